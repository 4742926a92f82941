#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task
"""Masks of task instances against torchvision: pasted into images, and shown to the network.

The pixels of paste_masks_in_image above one half, for boxes of any size and place, also outside of the image; and the
masks that GeneralizedRCNNTransform's resize gives, mirrored or not, within each object's box. instances.py [BUILD];
driven by build/bin/instances_probe.
"""
import os
import pathlib
import random
import subprocess
import sys

import numpy
import torch
from torchvision.models.detection.roi_heads import paste_masks_in_image

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()


def probe(cases):
    done = subprocess.run([str(BUILD / "bin/instances_probe")], input="\n".join(cases) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout.splitlines()


def runs_of(mask):
    flat = mask.astype(numpy.int8).T.reshape(-1)  # down the columns
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[0], flat])))
    ends = numpy.concatenate([edges, [flat.size]])
    return numpy.diff(numpy.concatenate([[0], ends])).tolist()


def smooth(rng, side):
    """Probabilities as a network gives them: soft blobs, now and then noise, all, or nothing."""
    kind = rng.random()
    if kind < 0.1:
        return torch.full((side, side), float(rng.random() < 0.5))
    values = torch.rand(1, 1, rng.choice([3, 5, 9]), rng.choice([3, 5, 9]))
    values = torch.nn.functional.interpolate(values, (side, side), mode="bicubic")[0, 0]
    return torch.rand(side, side) if kind > 0.9 else values.mul(1.4).sub(0.2).clamp(0, 1)


def check_paste(rng):
    side = 28
    cases, wanted = [], []
    for _ in range(300):
        width, height = rng.randint(1, 200), rng.randint(1, 200)
        x, y = rng.uniform(-10, width - 0.5), rng.uniform(-10, height - 0.5)
        right, bottom = (max(0.5, at + rng.uniform(0, 1.5) ** 2 * size) for at, size in ((x, width), (y, height)))
        box = torch.tensor([[x, y, right, bottom]])  # theirs fails for one that is wholly outside
        mask = smooth(rng, side)
        pasted = paste_masks_in_image(mask[None, None], box, (height, width))[0, 0] > 0.5
        wanted.append(runs_of(pasted.numpy()))
        numbers = " ".join(repr(float(v)) for v in [*box[0].tolist(), *mask.flatten().tolist()])
        cases.append(f"paste {width} {height} {side} {numbers}")
    wrong = [i for i, line in enumerate(probe(cases)) if [int(v) for v in line.split()] != wanted[i]]
    print(f"pasted masks: {len(cases)} cases, {len(wrong)} differ")
    return not wrong


def check_windows(rng):
    cases, wanted, size = [], [], 28
    for _ in range(200):
        width, height = rng.randint(4, 120), rng.randint(4, 120)
        scale, flip = rng.uniform(0.3, 1.6), rng.randint(0, 1)
        mask = torch.rand(max(1, height // 6), max(1, width // 6))[None, None]
        mask = (torch.nn.functional.interpolate(mask, (height, width), mode="bilinear")[0, 0] > 0.5).numpy().astype(numpy.uint8)
        shown = torch.nn.functional.interpolate(torch.tensor(mask)[None, None].float(), scale_factor=scale, recompute_scale_factor=True)[0, 0]
        shown = (shown.flip(1) if flip else shown).numpy().astype(numpy.uint8)
        out_height, out_width = shown.shape
        if min(out_height, out_width) < 2:
            continue
        x1, y1 = rng.uniform(0, out_width - 1), rng.uniform(0, out_height - 1)
        x2, y2 = min(out_width, x1 + rng.uniform(1, size - 1)), min(out_height, y1 + rng.uniform(1, size - 1))
        part = shown[int(y1):int(numpy.ceil(y2)), int(x1):int(numpy.ceil(x2))]  # every pixel that the box touches
        whole = numpy.zeros((size, size), numpy.uint8)
        whole[:part.shape[0], :part.shape[1]] = part
        wanted.append(whole)
        counts = " ".join(map(str, runs_of(mask)))
        cases.append(f"window {width} {height} {out_width} {out_height} {flip} {x1!r} {y1!r} {x2!r} {y2!r} {size} {counts}")
    differ = sum(numpy.array([int(c) for c in line]).reshape(size, size).tolist() != want.tolist() for line, want in zip(probe(cases), wanted))
    print(f"windows of masks: {len(cases)} cases, {differ} differ")
    return differ == 0


if __name__ == "__main__":
    rng = random.Random(5)
    torch.manual_seed(5)
    sys.exit(0 if all([check_paste(rng), check_windows(rng)]) else 1)
