#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills one rank of two, each a node of its own, at every call by which a save in parts changes the disk.

kill_parts.py [SECONDS]

Two ranks under mpirun with training.zero 3 write one part each (Slurm's name for the node tells them apart). With
disk_shim.c preloaded on one of them, the N-th such call of its second save is its last: SIGKILL before it, or in the
middle of it. The other rank dies by itself or by mpirun. The same command must then go on from a good checkpoint,
without passing over a damaged one, to the weights of the run that nobody disturbed, to the bit. What SECONDS (default:
all the time it takes) do not suffice for is left out and said; calls far apart come first.
"""
import hashlib
import json
import os
import subprocess
import sys
import time

from supervised import LOCKSTEP, build_shim, folder_for, own_environment, verdict

JOB = {
    "name": "parts",
    "data": {"train": "synthetic", "samples": 32, "image_size": 8, "threads": 1},
    "model": {"name": "mlp", "classes": 3},
    "training": {"global_batch": 8, "epochs": 3, "optimizer": {"name": "sgd", "lr": 0.01}, "threads": 1, "zero": 3},
    "checkpoint": {"every_epochs": 1, "keep": 1},
}
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


def train(folder, run, rank=None, shim=None, **variables):
    words = list(MPIRUN)
    for number in range(2):
        variables_here = {"SLURMD_NODENAME": f"n{number}"}
        if number == rank:
            variables_here.update(variables, LD_PRELOAD=str(shim))
        words += ["-n", "1", "env"] + [f"{name}={value}" for name, value in variables_here.items()]
        words += [LOCKSTEP, "train", "job.json", "--run", run] + ([":"] if number == 0 else [])
    return subprocess.run(words, cwd=folder, env=own_environment(folder), capture_output=True, text=True, timeout=300)


def digest(folder, run):
    return hashlib.sha256((folder / run / "weights.safetensors").read_bytes()).hexdigest()


def calls_by_save(folder, shim, rank):
    """How many calls that rank has made at the end of its first and of its second save."""
    counts = []
    for epochs in (1, 2):
        count = folder / f"count{rank}-{epochs}"
        (folder / "job.json").write_text(json.dumps({**JOB, "training": {**JOB["training"], "epochs": epochs}}))
        done = train(folder, f"counted{rank}-{epochs}", rank, shim, SHIM_COUNT=count)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        counts.append(len(count.read_text().split()))
    (folder / "job.json").write_text(json.dumps(JOB))
    return counts


def one_kill(folder, shim, run, rank, how, at, expected):
    """Returns what went wrong, as a text; empty: nothing."""
    first = train(folder, run, rank, shim, SHIM_HOW=how, SHIM_AT=at)
    if first.returncode == 0:
        return "nobody was killed"
    again = train(folder, run)
    if again.returncode != 0 or "passed over" in again.stdout + again.stderr:
        return f"did not go on: {again.stdout}{again.stderr}"
    if "going on after step" not in again.stdout + again.stderr:
        return "the first checkpoint is lost"
    left = [name for name in os.listdir(folder / run / "checkpoints") if name.startswith(".")]
    if left:
        return f"left behind: {left}"
    return "" if digest(folder, run) == expected else "other weights"


def scattered(numbers):
    """All of them, each third first."""
    return [number for start in range(3) for number in numbers[start::3]]


def main():
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
    passed = failed = left_out = 0
    with folder_for("parts") as folder:
        shim = build_shim(folder)
        kills = []
        for rank in (1, 0):
            first, second = calls_by_save(folder, shim, rank)
            print(f"rank {rank}: {second - first} calls in a save")
            kills += [(rank, at, how) for at in scattered(range(first, second)) for how in ("kill", "torn")]
        (folder / "job.json").write_text(json.dumps(JOB))
        if train(folder, "straight").returncode != 0:
            sys.exit("the undisturbed run failed")
        expected = digest(folder, "straight")
        for rank, at, how in scattered(kills):
            if time.monotonic() > end and passed + failed > 0:  # a slow machine has one, too
                left_out += 1
                continue
            wrong = one_kill(folder, shim, f"{how}{rank}-{at}", rank, how, at, expected)
            passed += not wrong
            failed += bool(wrong)
            if wrong:
                print(f"rank {rank}, {how} at call {at}: {wrong}")
    print(f"{left_out} left out for time")
    return verdict("kill_parts", passed, failed, passed + failed)


if __name__ == "__main__":
    sys.exit(main())
