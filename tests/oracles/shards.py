#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: shards sources
"""The shards that `lockstep prep` writes, read by others: tar(1), tarfile, webdataset, wids and DALI (CPU).

Every sample comes once, with the same bytes from every reader; labels are those of the folders; pixels of JPEGs with
restart markers (baseline, progressive, grey, 4:4:4) equal those of the source files, a turned one is upright.
"""
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
from PIL import Image, ImageOps

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKSTEP = str(pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin/lockstep")
CLASSES = ["ant", "bee", "cow"]


def make_image(i):
    rng = np.random.default_rng(i)
    y, x = np.mgrid[0:40 + i % 7, 0:50 + i % 11]
    planes = [127 + 80 * np.sin(x / (5 + c) + y / (9 + 2 * c)) + 25 * rng.standard_normal(x.shape) for c in range(3)]
    return Image.fromarray(np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8))


def write_source(folder, count):
    """JPEGs of all kinds and PNGs; returns {stem: path}."""
    kinds = [dict(quality=90), dict(quality=85, progressive=True), dict(quality=95, subsampling=0),
             dict(quality=80, subsampling=1), dict(quality=75, optimize=True, restart_marker_blocks=3)]
    paths = {}
    for i in range(count):
        image = make_image(i)
        path = folder / CLASSES[i % 3] / f"image {i}.{'png' if i % 6 == 5 else 'jpg'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            image.save(path)
        else:
            options = dict(kinds[i % len(kinds)])
            if i % 10 == 7:
                image = image.convert("L")
            if i == 3:
                exif = Image.Exif()
                exif[0x112] = 6
                options["exif"] = exif
            image.save(path, **options)
        paths[f"image_{i}"] = path
    return paths


def by_tarfile(shards):
    samples = {}
    for shard in shards:
        listed = subprocess.run(["tar", "tf", shard], check=True, capture_output=True, text=True).stdout.split()
        with tarfile.open(shard) as tar:
            members = tar.getmembers()
            assert [m.name for m in members] == listed, "tar(1) and tarfile list the same"
            for member in members:
                key, extension = member.name.split(".", 1)
                assert member.mtime == 0 and member.mode == 0o444
                assert extension not in samples.setdefault(key, {}), f"{member.name} stands twice"
                samples[key][extension] = tar.extractfile(member).read()
    return samples


def by_webdataset(shards):
    import webdataset
    dataset = webdataset.WebDataset([str(s) for s in shards], shardshuffle=False)
    samples = {}
    for sample in dataset:
        assert sample["__key__"] not in samples, f"webdataset gives {sample['__key__']} twice"
        samples[sample["__key__"]] = {k: v for k, v in sample.items() if not k.startswith("__")}
    return samples


def by_wids(folder, cache):
    import wids
    dataset = wids.ShardListDataset(str(folder / "shards.json"), keep=True, transformations=[], cache_dir=str(cache))
    samples = {}
    for i in range(len(dataset)):
        sample = dataset[i]
        assert sample["__key__"] not in samples, f"wids gives {sample['__key__']} twice"
        samples[sample["__key__"]] = {k[1:]: v.read() if hasattr(v, "read") else bytes(v)
                                      for k, v in sample.items() if k.startswith(".")}
    return samples


def by_dali(shards, expected):
    """DALI gives no keys: as many samples as there are, each image's bytes once."""
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def
    images = {s["jpg"] for s in expected.values() if "jpg" in s} | {s["png"] for s in expected.values() if "png" in s}

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipeline():
        files, labels = fn.readers.webdataset(
            paths=[str(s) for s in shards], index_paths=[str(s.with_suffix(".idx")) for s in shards],
            ext=["jpg;png", "cls"], missing_component_behavior="error", name="reader")
        return files, labels

    pipe = pipeline()
    pipe.build()
    count = pipe.epoch_size("reader")
    found = []
    while len(found) < count:
        files, labels = pipe.run()
        for i in range(len(files)):
            found.append((bytes(np.asarray(files.at(i)).tobytes()), bytes(np.asarray(labels.at(i)).tobytes())))
    found = found[:count]
    assert count == len(expected), f"DALI sees {count} samples of {len(expected)}"
    assert {f for f, _ in found} == images and len({f for f, _ in found}) == count, "DALI gives each image once"
    labels = {s.get("jpg", s.get("png")): s["cls"] for s in expected.values()}
    assert all(labels[f] == label for f, label in found), "DALI gives each image its label"


def check_pixels(samples, paths):
    for key, sample in samples.items():
        stem = key.split("-", 1)[1]
        path = paths[stem]
        assert sample["cls"] == str(CLASSES.index(path.parent.name)).encode(), key
        original = Image.open(path)
        ours = np.asarray(Image.open(io.BytesIO(sample.get("jpg", sample.get("png")))).convert("RGB")).astype(int)
        if original.getexif().get(0x112, 1) == 1:
            theirs = np.asarray(original.convert("RGB")).astype(int)
            assert np.array_equal(ours, theirs), f"{key}: pixels changed"
        else:
            theirs = np.asarray(ImageOps.exif_transpose(original).convert("RGB")).astype(int)
            assert ours.shape == theirs.shape and np.abs(ours - theirs).mean() < 20, f"{key}: not upright"


def main():
    with tempfile.TemporaryDirectory() as where:
        where = pathlib.Path(where)
        paths = write_source(where / "source", 60)
        subprocess.run([LOCKSTEP, "prep", where / "source", "--to", where / "set", "--validate", "0.25", "--shard-size",
                        "100 KiB", "--json", where / "result.json"], check=True, capture_output=True)
        seen = {}
        for part in ("train", "validate"):
            folder = where / "set" / part
            shards = sorted(folder.glob("*.tar"))
            assert len(shards) > 1 or part != "train"
            samples = by_tarfile(shards)
            assert by_webdataset(shards) == samples, "webdataset gives the same bytes"
            assert by_wids(folder, where / "cache") == samples, "wids gives the same bytes"
            by_dali(shards, samples)
            listed = json.loads((folder / "shards.json").read_text())
            assert sum(s["nsamples"] for s in listed["shardlist"]) == len(samples)
            assert not seen.keys() & samples.keys(), "a key stands in one part only"
            seen.update(samples)
        assert len(seen) == 60, f"{len(seen)} samples of 60"
        check_pixels(seen, paths)
    print(f"shards: {len(seen)} samples alike from tar, tarfile, webdataset, wids and DALI; pixels as in the source")


if __name__ == "__main__":
    sys.exit(main())
