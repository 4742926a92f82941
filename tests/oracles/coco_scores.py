#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task sources image
"""Our COCO scores against pycocotools: all twelve figures and three of each class, of boxes and masks, on sets with crowds,
empty images, thousands of detections, ties, several categories, areas at the limits; unions, intersections and overlaps of
masks as compressed runs; and the processor time of both, side by side.

coco_scores.py [--measure IMAGES]: the latter measures a set of that many images alone, and prints a row for results/.
Driven by build/bin/detection_probe.
"""
import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LEAST_RATIO = 5


def theirs(truth, results, iou):
    """The twelve figures of pycocotools, then AP, AP50 and AP75 of each category."""
    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO(str(truth))
        evaluation = COCOeval(gt, gt.loadRes(str(results)), iou)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    figures = list(evaluation.stats)
    precision = evaluation.eval["precision"]
    for k in range(precision.shape[2]):
        for part in (precision[:, :, k, 0, 2], precision[0, :, k, 0, 2], precision[5, :, k, 0, 2]):
            figures.append(part[part > -1].mean() if (part > -1).any() else -1.0)
    return figures


def ours(truth, results, iou):
    done = subprocess.run([BUILD / "bin/detection_probe", "coco", truth, results, iou], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"detection_probe: {done.stderr}")
    return [float(word) for word in done.stdout.split()]


def ellipse(rng, box, width, height):
    """A mask that fills the box, as pycocotools would write it."""
    x, y, w, h = box
    rows, columns = np.mgrid[0:height, 0:width]
    inside = ((columns + 0.5 - x - w / 2) / (w / 2)) ** 2 + ((rows + 0.5 - y - h / 2) / (h / 2)) ** 2 <= 1
    if rng.random() < 0.3:
        inside &= (columns + rows) % 7 != 0  # many short runs
    rle = coco_mask.encode(np.asfortranarray(inside.astype(np.uint8)))
    return {"size": rle["size"], "counts": rle["counts"].decode()}


def uncompressed(rle):
    pixels = coco_mask.decode(rle).flatten(order="F")
    edges = np.flatnonzero(np.diff(np.concatenate([[0], pixels, [2]])))
    return {"size": rle["size"], "counts": np.diff(np.concatenate([[0], edges])).tolist()}


def polygons(rng, box):
    x, y, w, h = box
    parts = [[x, y + h / 2, x + w / 3, y, x + w, y + h / 3, x + w / 2, y + h]]
    if rng.random() < 0.4:
        parts.append([x + w / 2, y + h / 2, x + w * 1.1, y + h / 2, x + w * 1.1, y + h * 1.1, x + w / 2, y + h])
    return parts


def random_box(rng, width, height):
    if rng.random() < 0.15:  # areas of exactly 32 x 32 and 96 x 96
        side = rng.choice([32, 96])
        return [float(rng.randint(0, width - side)), float(rng.randint(0, height - side)), float(side), float(side)]
    w, h = rng.uniform(4, width * 0.6), rng.uniform(4, height * 0.6)
    return [round(rng.uniform(0, width - w), 2), round(rng.uniform(0, height - h), 2), round(w, 2), round(h, 2)]


def make_set(seed, folder, images=20, categories=3, truths=8, detections=30, masks=False, boxes=True, ties=True, empty=0.1):
    """A list and its results as files; detections lie around the truths, some right on them, some nowhere."""
    rng = random.Random(seed)
    width, height = (160, 120) if masks else (640, 480)
    all_images, annotations, results = [], [], []
    numbers = rng.sample(range(1, 20 * categories), categories)
    for image_id in rng.sample(range(10 * images), images):
        all_images.append({"id": image_id, "width": width, "height": height, "file_name": f"{image_id}.jpg"})
        here = [] if rng.random() < empty else [random_box(rng, width, height) for _ in range(rng.randint(1, 2 * truths))]
        labels = [rng.choice(numbers) for _ in here]
        for box, label in zip(here, labels):
            crowd = int(rng.random() < 0.1)
            area = rng.choice([box[2] * box[3], round(box[2] * box[3] * 0.7, 3), 1024, 9216])
            one = {"id": len(annotations) + 1, "image_id": image_id, "category_id": label, "bbox": box, "area": area,
                   "iscrowd": crowd}
            if masks:
                rle = ellipse(rng, box, width, height)
                one["segmentation"] = uncompressed(rle) if crowd else rng.choice([polygons(rng, box), rle])
            annotations.append(one)
        if rng.random() < empty:
            continue
        for _ in range(rng.randint(0, 2 * detections)):
            box, label = random_box(rng, width, height), rng.choice(numbers)
            if here and rng.random() < 0.7:
                k = rng.randrange(len(here))
                move = rng.choice([0, 0.02, 0.05, 0.1, 0.2])
                box = [round(v + rng.uniform(-move, move) * here[k][2 + i % 2], 3) for i, v in enumerate(here[k])]
                label = labels[k] if rng.random() < 0.9 else label
            score = rng.randint(0, 50) / 50 if ties else rng.random()
            one = {"image_id": image_id, "category_id": label, "score": score}
            if boxes or not masks:
                one["bbox"] = box
            if masks:
                one["segmentation"] = ellipse(rng, box, width, height)
            results.append(one)
    rng.shuffle(results)
    truth, found = folder / f"truth-{seed}.json", folder / f"results-{seed}.json"
    names = [{"id": n, "name": f"class {n}"} for n in numbers]
    truth.write_text(json.dumps({"images": all_images, "categories": names, "annotations": annotations}))
    found.write_text(json.dumps(results))
    return truth, found, len(results)


def fixed_sets(folder):
    """Two cases whose figures are known by heart."""
    def write(name, truths, results):
        truth, found = folder / f"{name}-truth.json", folder / f"{name}-results.json"
        truth.write_text(json.dumps({
            "images": [{"id": 1, "width": 400, "height": 400}], "categories": [{"id": 1, "name": "thing"}],
            "annotations": [{"id": i + 1, "image_id": 1, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": crowd}
                            for i, (box, crowd) in enumerate(truths)]}))
        found.write_text(json.dumps([{"image_id": 1, "category_id": 1, "bbox": box, "score": score} for box, score in results]))
        return truth, found, len(results)
    yield (*write("a", [([10, 10, 40, 40], 0), ([60, 10, 20, 20], 0), ([100, 0, 100, 100], 1)],
                  [([12, 10, 40, 40], .9), ([10, 10, 40, 40], .8), ([62, 12, 20, 20], .7), ([110, 10, 30, 30], .6),
                   ([150, 50, 30, 30], .5), ([300, 300, 10, 10], .4)]), "bbox")
    yield (*write("b", [([10, 10, 40, 40], 0), ([100, 10, 40, 40], 0)], [([10, 10, 40, 40], .9)]), "bbox")


def check_figures(folder):
    sets = list(fixed_sets(folder))
    sets += [(*make_set(seed, folder), "bbox") for seed in range(12)]
    sets += [(*make_set(20, folder, images=3, categories=1, truths=30, detections=900), "bbox"),  # beyond 100 a class
             (*make_set(21, folder, images=60, categories=20, truths=4, detections=60, ties=False), "bbox"),
             (*make_set(22, folder, images=10, truths=2, empty=0.6), "bbox")]
    for seed in range(30, 36):
        sets.append((*make_set(seed, folder, images=8, detections=15, masks=True, boxes=seed % 2 == 0), "segm"))
    sets.append((*make_set(36, folder, images=8, detections=15, masks=True, boxes=False), "bbox"))  # boxes around masks
    most, exact, figures, wrong = 0.0, 0, 0, 0
    for truth, found, _, iou in sets:
        a, b = ours(truth, found, iou), theirs(truth, found, iou)
        assert len(a) == len(b), (len(a), len(b))
        differs = max(abs(x - y) for x, y in zip(a, b))
        most, figures, exact = max(most, differs), figures + len(a), exact + sum(x == y for x, y in zip(a, b))
        if differs > 1e-6:
            wrong += 1
            print(f"FAIL {truth.name} {iou}:\n  ours   {a}\n  theirs {b}")
    print(f"coco_scores: {figures} figures of {len(sets)} sets with {sum(s[2] for s in sets)} detections: {exact} equal, "
          f"largest difference {most:.2g}")
    return wrong


def check_masks():
    """Unions, intersections, overlaps: the very strings, the very numbers."""
    rng, lines, expected = random.Random(3), [], []
    for _ in range(200):
        height, width = rng.randint(1, 40), rng.randint(1, 40)
        masks = []
        for _ in range(2):
            kind = rng.random()
            pixels = np.zeros((height, width), np.uint8)
            if kind < 0.4:
                pixels[:] = np.random.default_rng(rng.randrange(1 << 30)).random((height, width)) < rng.random()
            elif kind < 0.9:
                pixels[rng.randrange(height):, rng.randrange(width):rng.randint(1, width)] = 1
            elif kind < 0.95:
                pixels[:] = 1
            masks.append(coco_mask.encode(np.asfortranarray(pixels)))
        a, b = (m["counts"].decode() for m in masks)
        lines += [f"union {a} {b}", f"intersection {a} {b}", f"overlap {a} {b}", f"crowd {a} {b}"]
        expected += [coco_mask.merge(masks)["counts"].decode(), coco_mask.merge(masks, intersect=True)["counts"].decode()]
        expected += [coco_mask.iou(masks[:1], masks[1:], [crowd])[0, 0] for crowd in (0, 1)]
    done = subprocess.run([BUILD / "bin/detection_probe", "masks"], input="\n".join(lines), check=True, capture_output=True,
                          text=True)
    got = done.stdout.splitlines()
    assert len(got) == len(expected), (len(got), len(expected))
    wrong = 0
    for line, a, b in zip(lines, got, expected):
        if (a != b) if isinstance(b, str) else (float(a) != b):
            wrong += 1
            print(f"FAIL {line}: {a}, pycocotools {b}")
    print(f"coco_scores: {len(lines) - wrong} of {len(lines)} unions, intersections and overlaps of masks equal")
    return wrong


def processor_seconds(child):
    """Of a process that is waited for here."""
    _, status, used = os.wait4(child, 0)
    assert status == 0, status
    return used.ru_utime + used.ru_stime


def start_theirs(truth, found, iou):
    """pycocotools in a process of its own that has imported everything already."""
    if child := os.fork():
        return child
    try:
        theirs(truth, found, iou)
        os._exit(0)
    finally:
        os._exit(1)


def start_ours(truth, found, iou):
    command = [str(BUILD / "bin/detection_probe"), "coco", str(truth), str(found), iou]
    return os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])


def measure(truth, found, iou, rounds=3):
    """Files to figures, by processor time: what else runs on the machine hardly counts. In turn, the best of each."""
    times = [(processor_seconds(start_ours(truth, found, iou)), processor_seconds(start_theirs(truth, found, iou)))
             for _ in range(rounds)]
    mine, other = (min(column) for column in zip(*times))
    return mine, other


def check_speed(folder):
    wrong = 0
    for iou in ("bbox", "segm"):
        truth, found, count = make_set(50, folder, images=100, categories=30, truths=4, detections=50, masks=iou == "segm")
        mine, other = measure(truth, found, iou)
        print(f"coco_scores: {iou}, {count} detections in 100 images: {mine:.3f} s of processor time, pycocotools {other:.3f} s: "
              f"{other / mine:.1f} times as fast")
        wrong += other < LEAST_RATIO * mine
    return wrong


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if len(sys.argv) == 3 and sys.argv[1] == "--measure":
            rows = []
            for iou in ("bbox", "segm"):
                truth, found, count = make_set(60, folder, images=int(sys.argv[2]), categories=80, truths=4, detections=100,
                                               masks=iou == "segm", ties=False)
                mine, other = measure(truth, found, iou)
                rows.append({"what": f"COCO scores of {count} detections ({iou}) in {sys.argv[2]} images, 80 classes: files to figures",
                             "processor_s": round(mine, 3), "peer": "pycocotools 2.0.11", "peer_processor_s": round(other, 3),
                             "ratio": round(other / mine, 1),
                             "results_mb": round(found.stat().st_size / 1e6, 1),
                             "command": f"python3 tests/oracles/coco_scores.py --measure {sys.argv[2]}"})
            print(json.dumps(rows, indent=2))
            return 0
        wrong = check_figures(folder) + check_masks() + check_speed(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
