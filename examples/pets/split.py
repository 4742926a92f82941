#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes class folders of Oxford-IIIT Pet, in its own layout: split.py PETS OUT [SHARE]

PETS holds images/ and annotations/trainval.txt (image, class, species 1 cat / 2 dog, breed). OUT/breeds and OUT/species
get train/ and validate/ with one folder a class, of links to the images. SHARE (default 0.2) of each breed's images goes
to validate, chosen by the hash of the image's name: the same split everywhere.
"""
import hashlib
import pathlib
import sys


def main():
    pets, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    share = float(sys.argv[3]) if len(sys.argv) > 3 else 0.2
    listing = pets / "annotations/trainval.txt"
    if not listing.exists():
        sys.exit(f"{listing}: there is no such file\n  fix: give the folder that holds images/ and annotations/")
    breeds = {}
    for line in listing.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, species, _ = line.split()
            breeds.setdefault((name.rpartition("_")[0], "cat" if species == "1" else "dog"), []).append(name)
    counts = {"train": 0, "validate": 0}
    for (breed, species), names in breeds.items():
        names.sort(key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        held = round(len(names) * share)
        for index, name in enumerate(names):
            part = "validate" if index < held else "train"
            counts[part] += 1
            for task, label in (("breeds", breed), ("species", species)):
                link = out / task / part / label / f"{name}.jpg"
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.is_symlink():
                    link.symlink_to(pets / "images" / f"{name}.jpg")
    print(f"{len(breeds)} breeds, {counts['train']} images to train, {counts['validate']} to validate: {out}")


if __name__ == "__main__":
    main()
