#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cats and dogs with their outlines, from the trimaps of Oxford-IIIT Pet, as a list in COCO's form:
bodies.py PETS > bodies.coco.json    (needs numpy, Pillow and pycocotools)
then: lockstep prep bodies.coco.json --images PETS/images --to pets/bodies --validate 0.2 --plain
"""
import json
import pathlib
import sys

import numpy
from PIL import Image
from pycocotools import mask as runs

pets = pathlib.Path(sys.argv[1])
images, annotations = [], []
for line in (pets / "annotations/trainval.txt").read_text().splitlines():
    if line.startswith("#"):
        continue
    name, _, species, _ = line.split()
    trimap = numpy.asarray(Image.open(pets / f"annotations/trimaps/{name}.png"))
    body = runs.encode(numpy.asfortranarray(trimap != 2).astype(numpy.uint8))  # 1: inside, 3: at the border
    number = len(images) + 1
    images.append({"id": number, "file_name": name + ".jpg", "width": trimap.shape[1], "height": trimap.shape[0]})
    if runs.area(body) > 0:
        annotations.append({"id": number, "image_id": number, "category_id": int(species), "iscrowd": 0,
                            "area": int(runs.area(body)), "bbox": runs.toBbox(body).tolist(),
                            "segmentation": {"size": body["size"], "counts": body["counts"].decode()}})
json.dump({"images": images, "annotations": annotations,
           "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]}, sys.stdout)
