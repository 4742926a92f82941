#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends or fails a training run at every call by which a save changes the disk: kill_saves.py [SECONDS]

disk_shim.c, preloaded, lets the N-th such call go wrong: SIGKILL before it, SIGKILL in the middle of it, ENOSPC or EIO
once or for good. For every call of the second save of a run (which also removes an older checkpoint): a killed run goes
on by the same command, a failed one trains to its end or says that it could not save; the weights must be those of the
run that nobody disturbed, to the bit, no good checkpoint may be lost, and no sample taken twice. What SECONDS
(default: all the time it takes) do not suffice for is left out and said.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import check_history

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")
JOB = {
    "name": "saved",
    "data": {"train": "synthetic", "samples": 32, "image_size": 8, "threads": 1},
    "model": {"name": "mlp", "classes": 3},
    "training": {"global_batch": 8, "epochs": 3, "optimizer": {"name": "sgd", "lr": 0.01}, "threads": 1},
    "checkpoint": {"every_epochs": 1, "keep": 1},
}
KINDS = ("kill", "torn", "enospc", "eio", "enospc-on", "eio-on")


def train(folder, run, shim=None, **variables):
    environment = dict(os.environ, **variables)
    if shim:
        environment["LD_PRELOAD"] = str(shim)
    words = [LOCKSTEP, "train", "job.json", "--run", run, "--history"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def digest(folder, run):
    return hashlib.sha256((folder / run / "weights.safetensors").read_bytes()).hexdigest()


def events(folder, run, name):
    rows = [json.loads(line) for line in (folder / run / "journal.jsonl").read_text().splitlines()]
    return [row for row in rows if row["event"] == name]


def calls_by_save(folder, shim):
    """How many calls were made at the end of each save of an undisturbed run."""
    counts = []
    for epochs in (1, 2):
        count = folder / f"count{epochs}"
        job = json.loads(json.dumps(JOB))
        job["training"]["epochs"] = epochs
        (folder / "job.json").write_text(json.dumps(job))
        done = train(folder, f"counted{epochs}", shim, SHIM_COUNT=str(count))
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        counts.append(count.stat().st_size)
    (folder / "job.json").write_text(json.dumps(JOB))
    return counts


def one_fault(folder, shim, run, how, at, expected):
    """Returns what went wrong, as a text; empty: nothing."""
    first = train(folder, run, shim, SHIM_HOW=how, SHIM_AT=str(at))
    if how in ("kill", "torn") and first.returncode != -9:
        return f"exit code {first.returncode} instead of a kill\n{first.stderr}"
    if how in ("enospc", "eio") and first.returncode != 0:
        return f"training did not go on: {first.stderr}"
    if how.endswith("-on") and (first.returncode != 3 or "machine error" not in first.stderr):
        return f"exit code {first.returncode}, not a machine error: {first.stderr}"
    if first.returncode != 0:
        again = train(folder, run)
        if again.returncode != 0 or "passed over" in again.stderr:
            return f"did not go on: {again.stdout}{again.stderr}"
        if "going on after step" not in again.stderr:
            return "the first checkpoint is lost"
    if digest(folder, run) != expected:
        return "other weights"
    wrong, _ = check_history.check(folder / run, folder / "straight")
    return "; ".join(wrong)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else float("inf")
    end = time.monotonic() + seconds
    passed = failed = left_out = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-saves-") as name:
        folder = pathlib.Path(name)
        shim = folder / "shim.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", shim,
                        ROOT / "tests/faults/disk_shim.c", "-ldl", "-lpthread"], check=True)
        first, second = calls_by_save(folder, shim)
        if train(folder, "straight").returncode != 0:
            sys.exit("the undisturbed run failed")
        expected = digest(folder, "straight")
        for at in range(first, second):
            for how in KINDS:
                if time.monotonic() > end:
                    left_out += 1
                    continue
                wrong = one_fault(folder, shim, f"{how}{at}", how, at, expected)
                passed += not wrong
                failed += bool(wrong)
                if wrong:
                    print(f"{how} at call {at}: {wrong}")
    print(f"{second - first} calls in a save, each {len(KINDS)} ways; {left_out} left out for time")
    print(f"kill_saves: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
