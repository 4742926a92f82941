#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FastBox learns: drawn scenes in KITTI's layout, minutes on two cores, to an AP far above what says the same everywhere.

The constant predictor says the mean box of the training objects in every cell, with one confidence: what can be reached
without looking. Both are scored by the same protocol (KITTI's, moderate, IoU 0.7).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin" / "lockstep"
WANTED = 0.7
JOB = {
    "name": "learning",
    "task": "detect",
    "data": {"train": "kitti/train", "validate": "kitti/validate", "image_size": [96, 320]},
    "model": {"name": "fastbox_resnet18", "width": 16},
    "training": {"global_batch": 16, "epochs": 16, "optimizer": {"name": "adamw", "lr": 0.002},
                 "schedule": {"warmup_epochs": 0.5}, "clip_norm": 10, "seed": 1},
    "evaluation": {"every_epochs": 4},
}


def run(*words, folder):
    done = subprocess.run([str(LOCKSTEP), *words], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run("prep", "--synthesize", "kitti", "--count", "1600", "--classes", "3", "--to", "drawn", folder=folder)
        run("prep", "drawn/training", "--to", "kitti", "--validate", "0.15", folder=folder)
        (folder / "job.json").write_text(json.dumps(JOB))
        run("train", "job.json", "--run", "run", folder=folder)
        run("eval", "run", "--json", "eval.json", folder=folder)
        found = json.loads((folder / "eval.json").read_text())
        print(f"AP easy {found['easy']:.4f}, moderate {found['moderate']:.4f}, hard {found['hard']:.4f}; wanted {WANTED}")
        if found["moderate"] < WANTED:
            sys.exit("it has not learnt")


main()
