#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tuning costs: tune.py [asha] [overhead] [speedup] [--record], default all.

asha      ASHA finds the best of random search's trials for at most a third of its node-hours (real trainings)
overhead  less than 20 ms a trial beside the program itself, in a study of 10,000 trials of 8 parameters
speedup   partitioning on 2 cores is at least 1.9 times as fast as on 1, for a simulation of 50 ms
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = BUILD / "bin" / "lockstep"
ENVIRONMENT = {**os.environ, "LOCKSTEP_BUSY_CORES": "0", "ONEDNN_MAX_CPU_ISA": os.environ.get("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")}


def lockstep(folder, *words):
    done = subprocess.run([LOCKSTEP, *map(str, words)], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"lockstep {' '.join(map(str, words))}: {done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout


def asha(folder, trials=20, epochs=16):
    lockstep(folder, "prep", "--synthesize", "shapes", "--count", 3000, "--classes", 10, "--to", "shapes")
    job = {"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 32}, "model": {"name": "smallcnn"},
           "training": {"global_batch": 32, "epochs": epochs, "threads": 1}, "checkpoint": {"every_epochs": epochs}}
    (folder / "job.json").write_text(json.dumps(job))
    found = {}
    for scheduler in ("none", "asha"):
        study = {"name": scheduler, "job": "job.json", "sampler": "random", "scheduler": scheduler, "trials": trials, "seed": 3,
                 "space": {"training.optimizer.lr": {"log": [1e-4, 1]}, "training.optimizer.momentum": {"range": [0, 0.99]},
                           "training.optimizer.weight_decay": {"log": [1e-6, 1e-2]}, "training.label_smoothing": {"range": [0, 0.2]}}}
        (folder / "study.json").write_text(json.dumps(study))
        found[scheduler] = json.loads(lockstep(folder, "tune", "study.json", "--no-plan", "--here", "--json", "-"))
    plain, early = found["none"], found["asha"]
    share = early["node_hours"] / plain["node_hours"]
    row = {"trials": trials, "epochs": epochs, "random_best": plain["best"]["value"], "asha_best": early["best"]["value"],
           "random_node_hours": plain["node_hours"], "asha_node_hours": early["node_hours"], "share": share, "pruned": early["pruned"]}
    print(f"asha: {row}", flush=True)
    assert row["asha_best"] >= row["random_best"] - 0.005, "ASHA's best is worse"
    assert share <= 1 / 3, f"ASHA took {share:.2f} of the node-hours"
    return row


def overhead(folder, trials=10000):
    space = {f"x{i}": {"range": [0, 1]} for i in range(6)} | {"lr": {"log": [1e-5, 1]}, "o": {"choice": ["a", "b", "c"]}}
    (folder / "many.json").write_text(json.dumps({"name": "many", "space": space, "trials": trials}))
    program = ["/bin/echo", "{x0}"]
    begun = time.monotonic()
    for _ in range(200):
        subprocess.run(["/bin/echo", "1"], stdout=subprocess.DEVNULL)
    bare = (time.monotonic() - begun) / 200
    begun = time.monotonic()
    lockstep(folder, "tune", "many.json", "--workers", 1, "--here", "--", *program)
    mean = (time.monotonic() - begun) / trials
    # The last thousand, by their own time stamps.
    stamps = [json.loads(line)["datetime_complete"] for line in open(folder / "studies/many/study.log") if '"datetime_complete"' in line]
    from datetime import datetime
    late = (datetime.fromisoformat(stamps[-1]) - datetime.fromisoformat(stamps[-1001])).total_seconds() / 1000
    row = {"trials": trials, "program_seconds": bare, "mean_seconds": mean, "last_thousand_seconds": late, "overhead_seconds": late - bare}
    print(f"overhead: {row}", flush=True)
    assert late - bare < 0.020, f"{1000 * (late - bare):.1f} ms a trial"
    return row


def speedup(folder):
    space = {"a": {"range": [0, 1]}, "b": {"range": [0, 1]}}
    (folder / "p.json").write_text(json.dumps({"name": "p", "space": space, "partition": {"starts": 128, "chains": 16, "points": 300}}))
    program = ["sh", "-c", 'sleep 0.05; [ "${0#0.[0-4]}" = "$0" ] && echo high || echo low', "{a}"]
    seconds, results = {}, {}
    for workers in (1, 2):
        begun = time.monotonic()
        lockstep(folder, "tune", "--partition", "p.json", "--to", f"p{workers}", "--workers", workers, "--here", "--", *program)
        seconds[workers] = time.monotonic() - begun
        results[workers] = json.loads((folder / f"p{workers}" / "partition.json").read_text())
    assert results[1] == results[2], "the result depends on the number of workers"
    row = {"simulation_seconds": 0.05, "evaluations": results[1]["evaluations"], "seconds": seconds, "speedup": seconds[1] / seconds[2]}
    print(f"speedup: {row}", flush=True)
    assert row["speedup"] >= 1.9, f"{row['speedup']:.2f}"
    return row


def main():
    parts = {"asha": asha, "overhead": overhead, "speedup": speedup}
    chosen = [word for word in sys.argv[1:] if word in parts] or list(parts)
    path = ROOT / "results" / "tune.json"
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            row = parts[name](pathlib.Path(folder))
        if "--record" in sys.argv:
            known = json.loads(path.read_text()) if path.exists() else {}
            known[name] = {"command": f"tests/learning/tune.py {name} --record", **row}
            path.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
