#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training run with SIGKILL at seeded moments until it ends: kill_resume.py [SECONDS] [SEED]

Each round trains one small job to its end through as many kills as fall into it; the weights must be those of the run
that nobody disturbed, to the bit, on one rank and on two. Rounds until SECONDS are over; the seed is printed, and the
same seed tries the same moments again.
"""
import random
import sys
import time

from supervised import Run, folder_for, seed_from, verdict

JOB = {
    "name": "killed",
    "data": {"train": "synthetic", "samples": 190, "image_size": 16, "balance": 1},  # of 3 classes, not all of one size
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 16, "epochs": 12, "optimizer": {"name": "adamw", "lr": 0.001}, "ema_decay": 0.9,
                 "mixup": 0.2, "threads": 1},
    "checkpoint": {"every_epochs": 0.5},
}


def train_through_kills(run, rng, length):
    """Returns the number of kills; None when the run does not come to its end."""
    for kills in range(60):
        code = run.start().wait(rng.uniform(0.3, 1.0) * length if kills < 12 else 300)
        if code is not None:
            return kills if code == 0 else None
        run.kill()
    return None


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rng = random.Random(seed_from(sys.argv, 2))
    passed = failed = kills = 0
    with folder_for("faults", JOB) as folder:
        straight, length = {}, {}
        for ranks in (1, 2):
            begin = time.monotonic()
            straight[ranks] = Run(folder, f"straight{ranks}", ranks).finish()
            length[ranks] = time.monotonic() - begin
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ranks = 1 + (passed + failed) % 2
            run = Run(folder, f"run{passed + failed}", ranks)
            suffered = train_through_kills(run, rng, length[ranks])
            same = suffered is not None and run.digest() == straight[ranks].digest()
            kills += suffered or 0
            passed, failed = passed + same, failed + (not same)
            if not same:
                print(f"{run.name} on {ranks} ranks: {'other weights' if suffered is not None else 'no end'}\n{run.tail()}")
    return verdict("kill_resume", passed, failed, kills)


if __name__ == "__main__":
    sys.exit(main())
