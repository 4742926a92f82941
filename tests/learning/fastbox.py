#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FastBox learns: drawn scenes in KITTI's layout, minutes on two cores, to an AP far above what says the same everywhere.

Beside it a constant predictor: the mean box of all cars in every cell, each with one confidence, which is what can be said
without looking. Both are scored by the same protocol (KITTI's as KittiBox has it, moderate, overlap 0.7).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin" / "lockstep"
WANTED = 0.85
MOST_CONSTANT = 0.1
CELL = 32
JOB = {
    "name": "learning",
    "task": "detect",
    "data": {"train": "kitti/train", "validate": "kitti/validate", "image_size": [96, 320]},
    "model": {"name": "fastbox_resnet18", "width": 16},
    "training": {"global_batch": 16, "epochs": 5, "optimizer": {"name": "adamw", "lr": 0.002},
                 "schedule": {"warmup_epochs": 0.5}, "clip_norm": 10, "seed": 1},
    "evaluation": {"every_epochs": 2.5},
}


def run(*words, folder):
    done = subprocess.run([str(LOCKSTEP), *words], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}")


def constant_predictor(folder):
    """Its AP, by result files in KITTI's form for every image of the set."""
    labels = folder / "drawn" / "training" / "label_2"
    cars = [[float(word) for word in line.split()[4:8]] for path in labels.glob("*.txt")
            for line in path.read_text().splitlines() if line.startswith("Car ")]
    wide, high = (sum(box[side + 2] - box[side] for box in cars) / len(cars) for side in (0, 1))
    height, width = JOB["data"]["image_size"]
    boxes = [(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
             for y in range(CELL // 2, height, CELL) for x in range(CELL // 2, width, CELL)]
    said = "".join(f"Car -1 -1 -10 {a:.2f} {b:.2f} {c:.2f} {d:.2f} -1 -1 -1 -1000 -1000 -1000 -10 0.5\n" for a, b, c, d in boxes)
    (folder / "constant").mkdir()
    for path in labels.glob("*.txt"):
        (folder / "constant" / path.name).write_text(said)
    run("eval", "--kitti", str(labels), "--detections", "constant", "--json", "constant.json", folder=folder)
    return json.loads((folder / "constant.json").read_text())["car_moderate_kittibox"]


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run("prep", "--synthesize", "kitti", "--count", "1200", "--classes", "3", "--to", "drawn", folder=folder)
        run("prep", "drawn/training", "--to", "kitti", "--validate", "0.15", folder=folder)
        (folder / "job.json").write_text(json.dumps(JOB))
        run("train", "job.json", "--run", "run", folder=folder)
        run("eval", "run", "--json", "eval.json", folder=folder)
        found = json.loads((folder / "eval.json").read_text())
        constant = constant_predictor(folder)
        print(f"AP easy {found['easy']:.4f}, moderate {found['moderate']:.4f}, hard {found['hard']:.4f}; "
              f"of one box everywhere {constant:.4f}")
        if found["moderate"] < WANTED or constant > MOST_CONSTANT:
            sys.exit(f"it has not learnt: at least {WANTED} is wanted, and {MOST_CONSTANT} at most without looking")


main()
