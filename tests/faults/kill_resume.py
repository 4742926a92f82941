#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training run with SIGKILL at seeded moments until it ends: kill_resume.py [SECONDS] [SEED]

Each round trains one small job to its end through as many kills as fall into it; the weights must be those of the run
that nobody disturbed, to the bit, on one rank and on two. Rounds until SECONDS are over; the seed is printed, and the
same seed tries the same moments again.
"""
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")
JOB = {
    "name": "killed",
    "data": {"train": "synthetic", "samples": 192, "image_size": 16},
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 16, "epochs": 12, "optimizer": {"name": "adamw", "lr": 0.001}, "ema_decay": 0.9,
                 "mixup": 0.2, "threads": 1},
    "checkpoint": {"every_epochs": 0.5},
}


def start(folder, run, ranks):
    words = [LOCKSTEP, "train", "job.json", "--run", run] + (["--ranks", str(ranks)] if ranks > 1 else [])
    log = open(folder / f"{run}.log", "ab")
    return subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def kill_all(process):
    """Everything of its session, launcher and ranks alike, as when a node loses its power."""
    subprocess.run(["pkill", "-9", "-s", str(process.pid)], check=False)
    process.wait()


def digest(folder, run):
    return hashlib.sha256((folder / run / "weights.safetensors").read_bytes()).hexdigest()


def train_through_kills(folder, run, ranks, rng, length):
    """Returns the number of kills; None when the run does not come to its end."""
    for kills in range(60):
        process = start(folder, run, ranks)
        try:
            if process.wait(timeout=rng.uniform(0.3, 1.0) * length if kills < 12 else 300) == 0:
                return kills
            return None
        except subprocess.TimeoutExpired:
            kill_all(process)
    return None


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    passed = failed = kills = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-faults-") as name:
        folder = pathlib.Path(name)
        (folder / "job.json").write_text(json.dumps(JOB))
        expected, length = {}, {}
        for ranks in (1, 2):
            begin = time.monotonic()
            if start(folder, f"straight{ranks}", ranks).wait() != 0:
                sys.exit((folder / f"straight{ranks}.log").read_text())
            expected[ranks], length[ranks] = digest(folder, f"straight{ranks}"), time.monotonic() - begin
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            number = passed + failed
            ranks = 1 + number % 2
            run = f"run{number}"
            suffered = train_through_kills(folder, run, ranks, rng, length[ranks])
            same = suffered is not None and digest(folder, run) == expected[ranks]
            kills += suffered or 0
            passed += same
            failed += not same
            if not same:
                print(f"{run} on {ranks} ranks: {'other weights' if suffered is not None else 'no end'}")
                print("\n".join((folder / f"{run}.log").read_text().splitlines()[-20:]))
    print(f"{kills} kills")
    print(f"kill_resume: {passed} passed, {failed} failed")
    return 1 if failed or not kills else 0


if __name__ == "__main__":
    sys.exit(main())
