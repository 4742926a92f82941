#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks, SIGKILL in mid-epoch, on with three, SIGKILL, on with one: every step sees the batch of an undisturbed run.

The loss of every step must be that of the run that nobody disturbed on one rank, within rounding: a lost, repeated or
exchanged sample shows at once. From a folder of images, from shards, and from shards in windows. kill_ranks.py [BUILD]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")
JOB = {
    "name": "ranks",
    "data": {"image_size": 32, "threads": 1},
    "model": {"name": "mlp", "classes": 4},  # no batch norm: its statistics are those of a rank
    "training": {"global_batch": 30, "epochs": 40, "optimizer": {"name": "sgd", "lr": 0.001}, "threads": 1},
    "checkpoint": {"every_epochs": 0.3},
}
KINDS = {
    "folder": {"train": "drawn/train"},
    "shards": {"train": "set/train", "order": "full"},
    "windows": {"train": "set/train", "order": "windows", "extent": "20 kB", "window": 3},
}


def start(folder, run, ranks):
    words = [LOCKSTEP, "train", "job.json", "--run", run] + (["--ranks", str(ranks)] if ranks > 1 else [])
    log = open(folder / f"{run}.log", "ab")
    return subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def events(folder, run):
    path = folder / run / "journal.jsonl"
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            pass  # the line that the kill cut off
    return rows


def losses(folder, run):
    """Of (last step, number of steps) that one line tells of; of those that were taken again the last counts."""
    return {(row["step"], row["steps"]): row["loss"] for row in events(folder, run) if row["event"] == "step"}


def run_kind(folder, kind):
    (folder / "job.json").write_text(json.dumps({**JOB, "data": {**JOB["data"], **KINDS[kind]}}))
    straight, killed = f"{kind}-straight", f"{kind}-killed"
    if start(folder, straight, 1).wait() != 0:
        sys.exit((folder / f"{straight}.log").read_text())
    for ranks, until in ((2, 25), (3, 75)):
        process = start(folder, killed, ranks)
        while process.poll() is None and max(losses(folder, killed), default=(0, 0))[0] < until:
            time.sleep(0.1)
        if process.poll() is not None:
            sys.exit("ended before the kill:\n" + (folder / f"{killed}.log").read_text())
        subprocess.run(["pkill", "-9", "-s", str(process.pid)], check=False)  # launcher and ranks, its session only
        process.wait()
    if start(folder, killed, 1).wait() != 0:
        sys.exit((folder / f"{killed}.log").read_text())
    ranks = [row["ranks"] for row in events(folder, killed) if row["event"] in ("start", "resume")]
    expected, seen = losses(folder, straight), losses(folder, killed)
    both = expected.keys() & seen.keys()  # a line that a kill cut off tells of fewer steps
    worst = max(abs(seen[steps] - expected[steps]) for steps in both)
    print(f"{kind}: ranks {ranks}, {len(both)} of {len(expected)} stretches of steps compared, "
          f"largest difference of a loss {worst:.2e}")
    return ranks == [2, 3, 1] and len(both) >= len(expected) - 4 and worst < 1e-3, list(expected.values())


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-ranks-") as name:
        folder = pathlib.Path(name)
        drawn = [LOCKSTEP, "prep", "--synthesize", "shapes", "--count", "250", "--classes", "4", "--image-size", "48"]
        subprocess.run(drawn + ["--to", "drawn"], cwd=folder, check=True, capture_output=True)
        subprocess.run([LOCKSTEP, "prep", "drawn", "--to", "set"], cwd=folder, check=True, capture_output=True)
        outcomes = {kind: run_kind(folder, kind) for kind in KINDS}
        good = [passed for passed, _ in outcomes.values()]
        good.append(outcomes["shards"][1] != outcomes["windows"][1])  # another order: the key does something
        print(f"kill_ranks: {sum(good)} passed, {len(good) - sum(good)} failed")
        return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
