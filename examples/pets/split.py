#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes class folders of Oxford-IIIT Pet, in its own layout: split.py PETS OUT [SHARE]

PETS holds images/ and annotations/trainval.txt (image, class, species 1 cat / 2 dog, breed). OUT/breeds and OUT/species
get train/ and validate/ with one folder a class, of links to the images. SHARE (default 0.2) of each breed's images goes
to validate, chosen by the hash of the image's name: the same split everywhere. Where PETS has annotations/test.txt too,
the official test half becomes test/.
"""
import hashlib
import pathlib
import sys


def read_listing(listing):
    """(breed, species) -> names of its images."""
    breeds = {}
    for line in listing.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, species, _ = line.split()
            breeds.setdefault((name.rpartition("_")[0], "cat" if species == "1" else "dog"), []).append(name)
    return breeds


def main():
    pets, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    share = float(sys.argv[3]) if len(sys.argv) > 3 else 0.2
    listing = pets / "annotations/trainval.txt"
    if not listing.exists():
        sys.exit(f"{listing}: there is no such file\n  fix: give the folder that holds images/ and annotations/")
    breeds = read_listing(listing)
    counts = {"train": 0, "validate": 0, "test": 0}

    def link_to(name, part, breed, species):
        counts[part] += 1
        for task, label in (("breeds", breed), ("species", species)):
            link = out / task / part / label / f"{name}.jpg"
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(pets / "images" / f"{name}.jpg")

    for (breed, species), names in breeds.items():
        names.sort(key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        held = round(len(names) * share)
        for index, name in enumerate(names):
            link_to(name, "validate" if index < held else "train", breed, species)
    official = pets / "annotations/test.txt"
    if official.exists():
        for (breed, species), names in read_listing(official).items():
            for name in names:
                link_to(name, "test", breed, species)
    print(f"{len(breeds)} breeds, {counts['train']} images to train, {counts['validate']} to validate, "
          f"{counts['test']} to test: {out}")


if __name__ == "__main__":
    main()
