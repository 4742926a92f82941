#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What choosing threads by the load costs or brings: measure_threads.py [ROUNDS] > results/threads.json

Beside one busy loop a core, the same job with the threads that `train` chooses by the load that it finds and with a
thread a core, in turn, ROUNDS times (default 5): samples a second without the first 5 steps. Fails when the chosen number
is a thread a core, for then nothing was chosen.
"""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
CORES = len(os.sched_getaffinity(0))
MODEL, BATCH, STEPS = "resnet18", 16, 20
JOB = {
    "name": "threads",
    "data": {"train": "synthetic", "samples": 80, "image_size": 64, "threads": 1},
    "model": {"name": MODEL, "classes": 100},
    "training": {"global_batch": BATCH, "steps": STEPS},
    "checkpoint": {"every_epochs": 0},
}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def train(folder, run, threads):
    """Threads that computed, samples a second."""
    environment = {key: value for key, value in os.environ.items() if key not in ("LOCKSTEP_BUSY_CORES", "OMP_NUM_THREADS")}
    subprocess.run([BUILD / "bin/lockstep", "train", "job.json", "--run", run, "--here", "--set", f"training.threads={threads}"],
                   cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    rows = [json.loads(line) for line in (folder / run / "journal.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["event"] == "step"][1:]
    took = next(row["threads"] for row in rows if row["event"] == "start")
    return took, sum(row["samples"] for row in steps) / sum(row["seconds"] for row in steps)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CORES)]
    try:
        with tempfile.TemporaryDirectory(prefix="lockstep-threads-") as name:
            folder = pathlib.Path(name)
            (folder / "job.json").write_text(json.dumps(JOB))
            chosen, other = [], []
            for number in range(rounds):
                chosen.append(train(folder, f"chosen{number}", 0))
                other.append(train(folder, f"other{number}", CORES))
    finally:
        for loop in loops:
            loop.kill()
    rates = [[rate for _, rate in runs] for runs in (chosen, other)]
    ratios = [mine / its for mine, its in zip(*rates)]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    print(json.dumps([{
        "what": f"training beside one busy loop on each of {CORES} cores", "model": MODEL, "batch": BATCH, "precision": "fp32",
        "image_size": 64, "steps": STEPS, "threads_chosen": [threads for threads, _ in chosen],
        "samples_per_second": round(statistics.median(rates[0]), 2), "peer": f"training.threads={CORES}",
        "peer_samples_per_second": round(statistics.median(rates[1]), 2), "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios], "command": f"scripts/measure_threads.py {rounds}", "commit": commit,
        "machine": f"{processor()}, {CORES} cores"}], indent=1))
    return 0 if all(threads < CORES for threads, _ in chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
