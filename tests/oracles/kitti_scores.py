#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task
"""Our KITTI scores against the second implementation of the protocol (kitti_protocol.py): its cases by hand, the worked
case, and random sets with ties in scores, boxes at the limits, every class and level, with and without the low rule.

Driven by build/bin/detection_probe, which adds the images in two collectors from the last to the first and merges them.
"""
import os
import pathlib
import random
import subprocess
import sys

import kitti_protocol as protocol

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
TYPES = ["Car", "Car", "Car", "Van", "Truck", "Pedestrian", "Pedestrian", "Person_sitting", "Cyclist", "Cyclist", "DontCare",
         "Misc"]


def words(images):
    lines = ["case"]
    for truths, detections in images:
        lines.append("image")
        lines += [f"truth {t.type} {t.truncation!r} {t.occlusion} " + " ".join(map(repr, t.box)) for t in truths]
        lines += [f"found {d.type} " + " ".join(map(repr, d.box)) + f" {d.score!r}" for d in detections]
    return "\n".join(lines) + "\n"


def random_box(rng):
    x, y = rng.randint(0, 12) * 50.0, rng.randint(0, 3) * 60.0
    return (x, y, x + rng.choice([30, 50, 80, 100]), y + rng.choice([20, 24.99, 25, 25.5, 39, 39.99, 40, 40.5, 50, 100]))


def nudged(rng, box):
    """A detection of this box: right on it, or off by a share that lies around the least overlaps."""
    step = rng.choice([0, 0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5]) * (box[2] - box[0])
    high = rng.choice([0, 0, 0, -0.5, 0.5, 1, 5, -5, -9.9])
    return (box[0] + step, box[1], box[2] + step, max(box[1] + 1, box[3] + high))


def random_images(rng):
    images = []
    for _ in range(rng.randint(1, 30)):
        truths, detections = [], []
        for _ in range(rng.randint(0, 8)):
            kind = rng.choice(TYPES)
            box = random_box(rng)
            if kind == "DontCare":
                truths.append(protocol.Truth(kind, -1, -1, (box[0], box[1], box[2] + 100, box[3] + 60)))
                continue
            truths.append(protocol.Truth(kind, rng.choice([0.0, 0.0, 0.1, 0.15, 0.16, 0.3, 0.31, 0.5, 0.51]),
                                         rng.choice([0, 0, 0, 1, 2, 3]), box))
        for truth in truths:
            for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
                kind = truth.type if rng.random() < 0.8 else rng.choice(TYPES)
                detections.append(protocol.Detection(kind, nudged(rng, truth.box), rng.randint(0, 30) / 30))
        for _ in range(rng.randint(0, 4)):
            detections.append(protocol.Detection(rng.choice(TYPES), random_box(rng), rng.randint(0, 30) / 30))
        rng.shuffle(detections)
        images.append((truths, detections))
    return images


def main():
    rng = random.Random(7)
    sets = [images for _, images, *_ in protocol.cases()] + [protocol.worked_images()]
    sets += [random_images(rng) for _ in range(60)]
    done = subprocess.run([BUILD / "bin/detection_probe", "kitti"], input="".join(map(words, sets)), check=True,
                          capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(sets), (len(lines), len(sets))
    most, figures, wrong = 0.0, 0, 0
    for number, (images, line) in enumerate(zip(sets, lines)):
        ours = iter(map(float, line.split()))
        for low_rule in (True, False):
            for name in protocol.CLASSES:
                for level in protocol.LEVELS:
                    ap11, ap40, mean41, truths = protocol.score(images, name, level, low_rule)
                    got = [next(ours) for _ in range(4)]
                    differs = max(abs(a - b) for a, b in zip(got, (truths, ap11, ap40, mean41)))
                    most, figures = max(most, differs), figures + 4
                    if differs > 1e-9:
                        wrong += 1
                        print(f"FAIL set {number}, {name} {level}, low rule {low_rule}: {got}, {(truths, ap11, ap40, mean41)}")
    print(f"kitti_scores: {figures} figures of {len(sets)} sets, largest difference {most:.2g}, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
