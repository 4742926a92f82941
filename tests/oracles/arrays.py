#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: sources
"""Arrays and outlines as others write and read them, through `lockstep prep`.

HDF5 files of h5py (plain, in groups, compressed, big-endian) and MNIST's files packed by gzip come out as the same
numbers; the outlines of a COCO list (polygons, runs, compressed runs) come out as the pixels that pycocotools takes,
turned as PIL turns the image (EXIF), and so do the runs and boxes in the json members.
"""
import gzip
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile

import h5py
import numpy as np
from PIL import Image, ImageOps
from pycocotools import mask as coco_mask

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKSTEP = str(pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin/lockstep")
checks = wrong = 0


def check(good, what):
    global checks, wrong
    checks += 1
    if not good:
        wrong += 1
        print(f"wrong: {what}")


def prep(source, to, *words):
    done = subprocess.run([LOCKSTEP, "prep", str(source), "--to", str(to), *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"prep {source}: {done.stderr}")


def samples(folder):
    """{number in the source: {extension: bytes}} over all parts, and the part of each."""
    found, parts = {}, {}
    for shard in sorted(folder.rglob("*.tar")):
        with tarfile.open(shard) as tar:
            for member in tar:
                key, extension = member.name.split(".", 1)
                number = int(key.split("-")[0])
                found.setdefault(number, {})[extension] = tar.extractfile(member).read()
                parts[number] = shard.parent.name
    return found, parts


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def hdf5(folder, rng):
    images = rng.integers(0, 256, (20, 9, 7, 3), dtype=np.uint8)
    sequences = rng.standard_normal((6, 4, 5, 3)).astype(">f4")
    labels = rng.integers(0, 4, 20)
    with h5py.File(folder / "grouped.h5", "w") as file:
        file.create_dataset("train/images", data=images[:12], compression="gzip", chunks=(5, 9, 7, 3))
        file.create_dataset("train/labels", data=labels[:12].astype(">i2"))
        file.create_dataset("test/images", data=images[12:])
        file.create_dataset("test/labels", data=labels[12:])
        file.create_dataset("notes", data="of somebody")
    prep(folder / "grouped.h5", folder / "grouped")
    found, parts = samples(folder / "grouped")
    order = list(range(12, 20)) + list(range(12))  # by name: test before train
    for number, row in enumerate(order):
        check(np.array_equal(pixels(found[number]["png"]), images[row]), f"image {row} out of HDF5")
        check(int(found[number]["cls"]) == labels[row], f"label {row} out of HDF5")
        check(parts[number] == ("train" if row < 12 else "test"), f"part of {row}")
    with h5py.File(folder / "radar.h5", "w") as file:
        file.create_dataset("reflectivity", data=sequences)
    prep(folder / "radar.h5", folder / "radar", "--validate", "0")
    found, _ = samples(folder / "radar")
    for row in range(6):
        array = np.load(io.BytesIO(found[row]["npy"]))
        check(array.dtype == np.dtype("<f4") and np.array_equal(array, sequences[row]), f"sequence {row} out of HDF5")
    with h5py.File(folder / "more.h5", "w") as file:
        file.create_dataset("data", data=sequences)
        file.create_dataset("labels", data=np.arange(6))
        file.create_dataset("timestamp", data=np.arange(6.0))
        file.create_dataset("iq", data=np.zeros((6, 2), complex))
    prep(folder / "more.h5", folder / "more", "--validate", "0")
    told = {one["name"]: one["reason"] for one in json.loads((folder / "more/dataset.json").read_text())["left_out"]}
    check(set(told) == {"timestamp", "iq"}, f"arrays that are no samples: named, {told}")
    check("6 f8" in told["timestamp"] and "complex" in told["iq"], f"what they are: {told}")
    with h5py.File(folder / "two.h5", "w") as file:
        file.create_dataset("left", data=sequences)
        file.create_dataset("right", data=sequences)
    done = subprocess.run([LOCKSTEP, "prep", str(folder / "two.h5"), "--to", str(folder / "two")], capture_output=True,
                          text=True)
    check(done.returncode == 2 and "left, right" in done.stderr, "two arrays and no word which: named")
    prep(folder / "two.h5", folder / "two", "--path-column", "left", "--validate", "0")
    check(len(samples(folder / "two")[0]) == 6, "an array chosen by name")
    whole = (folder / "grouped.h5").read_bytes()
    (folder / "cut.h5").write_bytes(whole[: len(whole) // 2])
    done = subprocess.run([LOCKSTEP, "prep", str(folder / "cut.h5"), "--to", str(folder / "cut")], capture_output=True)
    check(done.returncode == 2, "half an HDF5 file is a user error")
    with h5py.File(folder / "claims.h5", "w") as file:
        file.create_dataset("images", shape=(2**40, 8, 8), dtype="u1", chunks=(64, 8, 8))  # never written
    done = subprocess.run([LOCKSTEP, "prep", str(folder / "claims.h5"), "--to", str(folder / "claims")], capture_output=True,
                          text=True)
    check(done.returncode == 2 and "claims.h5: images claims 1099511627776 samples" in done.stderr,
          "more samples than the file can hold: named")
    with h5py.File(folder / "lzf.h5", "w") as file:  # a filter of h5py's own
        file.create_dataset("images", data=np.zeros_like(images), compression="lzf", chunks=(5, 9, 7, 3))
    done = subprocess.run([LOCKSTEP, "prep", str(folder / "lzf.h5"), "--to", str(folder / "lzf"), "--threads", "4"],
                          capture_output=True, text=True)
    check(done.returncode == 2 and 'packed by the filter "lzf"' in done.stderr, "a filter that is not there: named")
    check("HDF5-DIAG" not in done.stderr, "no words of the library's own")
    seconds = {}
    radar = rng.standard_normal((1024, 32, 32)).astype("f4")
    for rows in (1, 512):  # a chunk is unpacked whole: not once for each of its rows
        with h5py.File(folder / f"chunks{rows}.h5", "w") as file:
            file.create_dataset("images", data=radar, compression="gzip", compression_opts=1, chunks=(rows, 32, 32))
        before = os.times()
        prep(folder / f"chunks{rows}.h5", folder / f"chunks{rows}", "--threads", "2")
        after = os.times()
        seconds[rows] = after.children_user + after.children_system - before.children_user - before.children_system
    one, other = (samples(folder / f"chunks{rows}")[0] for rows in (1, 512))
    check(one == other, "the same numbers out of chunks of 1 and of 512 rows")
    check(seconds[512] < 4 * seconds[1], f"chunks of 512 rows: {seconds[512]:.2f} s, of 1: {seconds[1]:.2f} s")
    noise = rng.integers(0, 256, (40, 64, 64, 3), dtype=np.uint8)
    with h5py.File(folder / "damaged.h5", "w") as file:
        data = file.create_dataset("images", data=noise, compression="gzip", chunks=(1, 64, 64, 3))
        positions = [data.id.get_chunk_info(i).byte_offset for i in range(20)]
    with open(folder / "damaged.h5", "r+b") as file:
        for position in positions:
            file.seek(position)
            file.write(b"\0" * 64)
    done = subprocess.run([LOCKSTEP, "prep", str(folder / "damaged.h5"), "--to", str(folder / "damaged"), "--validate",
                           "0", "--threads", "4"], capture_output=True, text=True)
    check(done.returncode == 0 and "20 samples could not be read" in done.stdout, "damaged chunks: left out, named")
    check("HDF5-DIAG" not in done.stderr, "no words of the library's own, from no thread")


def mnist(folder, rng):
    images, labels = rng.integers(0, 256, (30, 6, 5), dtype=np.uint8), rng.integers(0, 10, 30, dtype=np.uint8)
    source = folder / "mnist"
    source.mkdir()
    with gzip.open(source / "train-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4i", 0x803, *images.shape) + images.tobytes())
    with gzip.open(source / "train-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2i", 0x801, 30) + labels.tobytes())
    prep(source, folder / "mnist-shards")
    found, _ = samples(folder / "mnist-shards")
    for i in range(30):
        check(np.array_equal(pixels(found[i]["png"]), images[i]), f"MNIST image {i}")
        check(int(found[i]["cls"]) == labels[i], f"MNIST label {i}")


def outline(rng, width, height):
    """A segmentation as COCO writes it, and its pixels by pycocotools."""
    kind = rng.integers(0, 3)
    if kind == 0:
        polygons = []
        for _ in range(rng.integers(1, 3)):
            centre = rng.uniform(-2, [width + 2, height + 2])
            corners = centre + rng.normal(0, rng.uniform(1, 20), (rng.integers(3, 9), 2))
            polygons.append([round(float(v), int(rng.integers(0, 4))) for v in corners.ravel()])
        runs = coco_mask.merge(coco_mask.frPyObjects(polygons, height, width))
        return polygons, coco_mask.decode(runs)
    inside = np.asfortranarray((rng.random((height, width)) < rng.uniform(0.05, 0.9)).astype(np.uint8))
    runs = coco_mask.encode(inside)
    if kind == 1:
        return {"size": [height, width], "counts": runs["counts"].decode()}, inside
    flat = inside.ravel(order="F").astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat]))).tolist()
    counts = np.diff([0] + edges + [flat.size]).tolist()
    return {"size": [height, width], "counts": counts}, inside


def turned(array, orientation):
    """What is seen of a stored array, by PIL."""
    image = Image.fromarray(array.astype(np.int32))
    image.getexif()[274] = orientation
    return np.asarray(ImageOps.exif_transpose(image)).astype(int)


def coco(folder, rng):
    source = folder / "coco"
    source.mkdir()
    images, annotations, expected, orientations, by_id = [], [], {}, {}, {}
    for i in range(60):
        width, height = (int(v) for v in rng.integers(3, 60, 2))
        exif = Image.Exif()
        exif[274] = orientations[i] = i % 8 + 1
        name = f"{i:03}." + ("png" if i % 3 else "jpg")
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(source / name, exif=exif)
        images.append({"id": i, "file_name": name, "width": width, "height": height})
        masks = []
        for _ in range(int(rng.integers(0, 6)) if i else 300):
            segmentation, inside = outline(rng, width, height)
            masks.append(inside)
            bbox = coco_mask.toBbox(coco_mask.encode(inside)).tolist() if inside.any() else [0, 0, 1, 1]
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": 18, "bbox": bbox,
                                "segmentation": segmentation})
            by_id[len(annotations)] = turned(inside, orientations[i])
        canvas = np.zeros((height, width), dtype=int)
        for k in sorted(range(len(masks)), key=lambda k: -int(masks[k].sum())):
            canvas[masks[k] > 0] = k + 1
        expected[i] = turned(canvas, orientations[i])
    document = {"images": images, "annotations": annotations, "categories": [{"id": 18, "name": "thing"}]}
    (source / "instances_all.json").write_text(json.dumps(document))
    prep(source / "instances_all.json", folder / "coco-shards", "--masks")
    found, _ = samples(folder / "coco-shards")
    for i, canvas in expected.items():
        got = pixels(found[i]["seg.png"]).astype(int)
        if got.ndim == 3:
            got = got[..., 0] + 256 * got[..., 1]
        check(np.array_equal(got, canvas), f"outlines of image {i}: pixels differ")
        sample = json.loads(found[i]["json"])
        check((sample["height"], sample["width"]) == canvas.shape, f"size of image {i}")
        check(sample["image_id"] == i, f"number of image {i}")
        for one in sample.get("objects", []):
            check(one["category_id"] == 18 and one["label"] == 0, f"category of {one['id']}")
            inside = np.asfortranarray(by_id[one["id"]].astype(np.uint8))
            box = coco_mask.toBbox(coco_mask.encode(inside)).tolist()
            check(one["bbox"] == box or not inside.any(), f"box of {one['id']}")
            runs = one["segmentation"]
            if isinstance(runs, dict):
                if isinstance(runs["counts"], list):
                    runs = coco_mask.frPyObjects(runs, *canvas.shape)
                check(np.array_equal(coco_mask.decode(runs), inside), f"runs of {one['id']}")


def main():
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory(prefix="lockstep-arrays-") as name:
        for part in (hdf5, mnist, coco):
            part(pathlib.Path(name), rng)
    print(f"arrays: {checks - wrong} of {checks} as h5py, gzip and pycocotools have them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
