#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: image
"""Boxes, masks and colours under our views against torchvision.transforms.v2 with the same parameters.

Crop, resize and mirror of tv_tensors.BoundingBoxes and Mask; SanitizeBoundingBoxes for what is dropped; brightness,
contrast, saturation and hue one after the other on floats. views.py [BUILD]; driven by build/bin/view_probe.
"""
import os
import pathlib
import random
import subprocess
import sys

import numpy
import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()


def probe(*words, given):
    done = subprocess.run([str(BUILD / "bin/view_probe"), *map(str, words)], input=given, capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    return done.stdout


def random_view(rng, width, height):
    w, h = rng.randint(2, width), rng.randint(2, height)
    x, y = rng.randint(0, width - w), rng.randint(0, height - h)
    return x, y, w, h, rng.randint(1, 300), rng.randint(1, 300), rng.randint(0, 1)


def shown(thing, view):
    x, y, w, h, out_w, out_h, flip = view
    thing = F.resize(F.crop(thing, y, x, h, w), [out_h, out_w], antialias=False)
    return F.horizontal_flip(thing) if flip else thing


def check_boxes(rng):
    width, height = rng.randint(20, 400), rng.randint(20, 400)
    view = random_view(rng, width, height)
    rows = []
    for _ in range(20):
        left, top = rng.uniform(0, width - 1), rng.uniform(0, height - 1)
        rows.append([left, top, rng.uniform(left + 0.5, width), rng.uniform(top + 0.5, height)])
    given = tv_tensors.BoundingBoxes(torch.tensor(rows, dtype=torch.float64), format="XYXY", canvas_size=(height, width))
    theirs = shown(given, view).numpy()
    x, y, w, h, out_w, out_h, _ = view
    whole = numpy.array([(r[2] - r[0]) * (r[3] - r[1]) for r in rows]) * out_w * out_h / (w * h)
    area = (theirs[:, 2] - theirs[:, 0]) * (theirs[:, 3] - theirs[:, 1])
    for threshold in (0.0, 0.25, 0.7):
        text = probe("boxes", *view, threshold, given="\n".join(" ".join(map(repr, r)) for r in rows).encode()).decode()
        ours = {int(line.split()[0]): [float(v) for v in line.split()[1:]] for line in text.splitlines()}
        share = area / whole
        kept = {i for i in range(len(rows)) if area[i] > 1e-9 and share[i] >= threshold}
        unsure = {i for i in range(len(rows)) if abs(share[i] - threshold) < 1e-6}
        if kept - unsure != ours.keys() - unsure:
            return f"kept {sorted(ours)} where torchvision's boxes say {sorted(kept)}, threshold {threshold}, view {view}"
        for i, box in ours.items():
            if numpy.abs(theirs[i] - box).max() > 1e-3:
                return f"box {i}: {box} where torchvision has {theirs[i]}, view {view}"
    return None


def check_mask(rng):
    width, height = rng.randint(5, 300), rng.randint(5, 300)
    view = random_view(rng, width, height)
    given = numpy.random.default_rng(rng.randint(0, 1 << 30)).integers(0, 2, (height, width), dtype=numpy.uint8)
    theirs = shown(tv_tensors.Mask(torch.from_numpy(given)[None]), view)[0].numpy()
    ours = numpy.frombuffer(probe("mask", *view, width, height, given=given.tobytes()), dtype=numpy.uint8)
    ours = ours.reshape(theirs.shape)
    return None if (ours == theirs).all() else f"{(ours != theirs).mean():.4f} of a mask differ, {width}x{height}, view {view}"


def check_colour(rng):
    image = torch.rand(3, 40, 50, generator=torch.Generator().manual_seed(rng.randint(0, 1 << 30)))
    image[:, :4] = image[:1, :4]  # grey: no hue at all
    image[:, 4], image[:, 5] = 0, 1
    factors = [rng.choice([1.0, rng.uniform(0.4, 1.6)]) for _ in range(3)] + [rng.choice([0.0, rng.uniform(-0.5, 0.5)])]
    theirs = F.adjust_saturation(F.adjust_contrast(F.adjust_brightness(image, factors[0]), factors[1]), factors[2])
    theirs = F.adjust_hue(theirs, factors[3]) if factors[3] != 0 else theirs
    ours = probe("colour", *factors, given=image.permute(1, 2, 0).contiguous().numpy().tobytes())
    ours = numpy.frombuffer(ours, dtype=numpy.float32).reshape(40, 50, 3)
    worst = numpy.abs(theirs.permute(1, 2, 0).numpy() - ours).max()
    return None if worst < 1e-3 else f"colours differ by {worst:.2e}, factors {factors}"


def main():
    rng = random.Random(1)
    passed, wrong = 0, []
    for check, count in ((check_boxes, 60), (check_mask, 120), (check_colour, 120)):
        for _ in range(count):
            reason = check(rng)
            passed += reason is None
            wrong += [f"{check.__name__}: {reason}"] if reason else []
    print("\n".join(wrong[:10]))
    print(f"views: {passed} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
