#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Mask R-CNN learns drawn scenes from scratch on a CPU, far above what a constant answer scores.

instances.py [BUILD]: prep draws 300 scenes of three shapes in COCO's layout; maskrcnn_resnet18_fpn trains at 128 pixels
and is evaluated. The constant answer says the same boxes of every validation image: for each class the boxes that cover
the training objects best, in the places where most of them are, sorted by how often they are right; it is scored by
`lockstep eval --coco`, as is what `predict` records of the trained network, which must agree with the run's own score.
"""
import json
import pathlib
import sys
import tempfile

from shared.lesson import program

lockstep = program(*sys.argv[1:2])
LEAST_AP50 = 0.8  # of masks, on images that training never saw
JOB = {
    "name": "scenes", "task": "instances",
    "data": {"train": "set/train", "validate": "set/validate", "image_size": [96, 128]},
    "model": {"name": "maskrcnn_resnet18_fpn", "width": 16},  # a quarter of every width
    "instances": {"slots": 4, "min_size": 96, "max_size": 128, "scale_min": 0.8, "mask_size": 64, "proposals": 128,
                  "evaluated_proposals": 128, "anchor_samples": 64, "roi_slots": 32, "detections": 20},
    "training": {"global_batch": 8, "epochs": 8, "seed": 3, "clip_norm": 5,
                 "optimizer": {"name": "adamw", "lr": 0.001}, "schedule": {"name": "cosine", "warmup_epochs": 0.5}},
    "evaluation": {"every_epochs": 0},
}


def overlap(a, b):
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    common = w * h if w > 0 and h > 0 else 0
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def constant_answer(train):
    """Greedily: the box of some training object that is right for most objects of its class not yet covered."""
    answer = []
    for category in train["categories"]:
        left = [a["bbox"] for a in train["annotations"] if a["category_id"] == category["id"]]
        candidates, images = left[::4], len(train["images"])
        for _ in range(20):
            best = max(candidates, key=lambda box: sum(overlap(box, other) >= 0.5 for other in left))
            right = sum(overlap(best, other) >= 0.5 for other in left)
            if right == 0:
                break
            left = [other for other in left if overlap(best, other) < 0.5]
            answer.append((category["id"], best, right / images))
    return answer


def ap_of(detections, root):
    (root / "found.json").write_text(json.dumps(detections))
    lockstep("eval", "--coco", "scenes/annotations/instances_val.json", "--detections", "found.json", "--json", "score.json", cwd=root)
    return json.loads((root / "score.json").read_text())


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        lockstep("prep", "--synthesize", "coco", "--count", "300", "--classes", "3", "--image-size", "96", "--to", "scenes", cwd=root)
        lockstep("prep", "scenes", "--to", "set", cwd=root)
        (root / "job.json").write_text(json.dumps(JOB))
        print(lockstep("train", "job.json", "--run", "run", cwd=root).splitlines()[-1])
        lockstep("eval", "run", "--json", "eval.json", cwd=root)
        learnt = json.loads((root / "eval.json").read_text())
        validation = json.loads((root / "scenes/annotations/instances_val.json").read_text())
        answer = constant_answer(json.loads((root / "scenes/annotations/instances_train.json").read_text()))
        constant = ap_of([{"image_id": image["id"], "category_id": category, "bbox": box, "score": score}
                          for image in validation["images"] for category, box, score in answer], root)
        lockstep("predict", "run", "scenes/val", "--to", "out.jsonl", cwd=root)
        names = {image["file_name"]: image["id"] for image in validation["images"]}
        records = [json.loads(line) for line in (root / "out.jsonl").read_text().splitlines()]
        recorded = ap_of([{"image_id": names[pathlib.Path(record["path"]).name], "category_id": found["label"] + 1,
                           "bbox": found["box"], "score": found["score"]} for record in records for found in record["objects"]], root)
    print(f"box AP {learnt['box_ap']:.4f}, AP50 {learnt['box_ap50']:.4f}; mask AP {learnt['mask_ap']:.4f}, AP50 {learnt['mask_ap50']:.4f}; "
          f"recorded boxes {recorded['ap']:.4f}; constant answer AP {constant['ap']:.4f}, AP50 {constant['ap50']:.4f}")
    wrong = []
    if learnt["mask_ap50"] < LEAST_AP50:
        wrong.append(f"mask AP50 below {LEAST_AP50}")
    if learnt["box_ap50"] < 4 * constant["ap50"] or learnt["box_ap"] < 4 * constant["ap"]:
        wrong.append("not far above the constant answer")
    if abs(recorded["ap"] - learnt["box_ap"]) > 0.002:
        wrong.append("what predict records scores otherwise than the run")
    return "; ".join(wrong) or 0


if __name__ == "__main__":
    sys.exit(main())
