#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What saving costs a run: measure_saves.py [SECONDS] > results/saves.json

Trains one job for about SECONDS (default 120) as if a failure came every 10 minutes, so that Young's rule saves often,
and tells what the journal says: time until a checkpoint was durable, how long the steps waited for it, and what share
of the run they would have waited for a save that is written on the spot. Fails when the steps waited more than 1 %.
"""
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
MODEL, BATCH = "resnet18", 16
JOB = {
    "name": "saves",
    "data": {"train": "synthetic", "samples": 4096, "image_size": 64, "threads": 1},
    "model": {"name": MODEL, "classes": 100},
    "training": {"global_batch": BATCH, "steps": 1000000, "optimizer": {"name": "adamw", "lr": 0.0001}},
    "checkpoint": {"mean_time_between_failures": "10 min"},
}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120
    with tempfile.TemporaryDirectory(prefix="lockstep-saves-") as name:
        folder = pathlib.Path(name)
        (folder / "job.json").write_text(json.dumps(dict(JOB, limits={"walltime": f"{seconds:.0f} s"})))
        done = subprocess.run([BUILD / "bin/lockstep", "train", "job.json", "--run", "run", "--here"], cwd=folder,
                              capture_output=True, text=True)
        if done.returncode != 85:
            sys.exit(done.stdout + done.stderr)
        rows = [json.loads(line) for line in (folder / "run/journal.jsonl").read_text().splitlines()]
    saves = [row for row in rows if row["event"] == "save"]
    stop = rows[-1]
    ran = stop["stall"] / stop["stall_share"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    durable = sum(row["seconds"] for row in saves)
    print(json.dumps([{
        "what": "saving while training goes on, by Young's rule at a failure every 10 minutes",
        "model": MODEL, "batch": BATCH, "precision": "fp32", "run_seconds": round(ran, 1), "saves": len(saves),
        "checkpoint_bytes": saves[0]["bytes"], "save_seconds": round(durable / len(saves), 3),
        "stall_seconds": round(stop["stall"] / len(saves), 4), "stall_share": round(stop["stall_share"], 5),
        "peer": "the steps wait until it is durable", "peer_share": round(durable / ran, 5),
        "ratio": round(durable / stop["stall"], 1), "command": "scripts/measure_saves.py", "commit": commit,
        "machine": f"{processor()}, {os.cpu_count()} cores"}], indent=1))
    return 0 if stop["stall_share"] <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
