#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks, SIGKILL in mid-epoch, on with three, SIGKILL, on with one: every step sees the batch of an undisturbed run.

The loss of every step must be that of the run that nobody disturbed on one rank, within rounding: a lost, repeated or
exchanged sample shows at once. From a folder of images, from shards, and from shards in windows.
"""
import json
import subprocess
import sys

import check_history
from supervised import LOCKSTEP, Run, build_hold, folder_for, until, verdict

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


def losses(run):
    """Of every step, as the ranks wrote them down; of those that were taken again the last counts."""
    return {step: lines[0]["loss"] for step, lines in check_history.effective_steps(run.path)[0].items()}


def reached(run):
    """The last step that the ranks of this start told of."""
    return max((row["step"] for row in run.since_start("step")), default=0)


def run_kind(folder, kind):
    """(whether all is well, the undisturbed losses, the number of kills)"""
    (folder / "job.json").write_text(json.dumps({**JOB, "data": {**JOB["data"], **KINDS[kind]}}))
    straight = Run(folder, f"{kind}-straight", 1, ["--history"]).finish()
    killed = Run(folder, f"{kind}-killed", 2, ["--history"], preload=folder / "hold.so")
    for ranks, step in ((2, 25), (3, 75)):
        killed.hold(step + 15)  # two epochs: it tells of its steps, and does not end before the kill
        killed.start(ranks)
        until(lambda: not killed.running() or reached(killed) >= step, 300, 0.05)
        if not killed.running():
            sys.exit("ended before the kill:\n" + killed.tail())
        killed.kill()
    killed.let_go()
    killed.finish(1)
    ranks = [row["ranks"] for row in killed.events("start", "resume")]
    expected, seen = losses(straight), losses(killed)
    both = expected.keys() & seen.keys()
    worst = max(abs(seen[step] - expected[step]) for step in both)
    print(f"{kind}: ranks {ranks}, {len(both)} of {len(expected)} steps compared, largest difference of a loss {worst:.2e}")
    return ranks == [2, 3, 1] and seen.keys() == expected.keys() and worst < 1e-3, list(expected.values()), len(ranks) - 1


def main():
    with folder_for("ranks") as folder:
        build_hold(folder)
        drawn = [LOCKSTEP, "prep", "--synthesize", "shapes", "--count", "250", "--classes", "4", "--image-size", "48"]
        subprocess.run(drawn + ["--to", "drawn"], cwd=folder, check=True, capture_output=True)
        subprocess.run([LOCKSTEP, "prep", "drawn", "--to", "set"], cwd=folder, check=True, capture_output=True)
        outcomes = {kind: run_kind(folder, kind) for kind in KINDS}
        good = [passed for passed, _, _ in outcomes.values()]
        good.append(outcomes["shards"][1] != outcomes["windows"][1])  # another order: the key does something
        return verdict("kill_ranks", sum(good), len(good) - sum(good), sum(kills for _, _, kills in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
