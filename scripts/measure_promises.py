#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was promised and what happened: measure_promises.py GPU [NAME...] > results/promise-GPU.json
or, of rows that are there, the totals with the start-up in them: measure_promises.py --totals results/promise-GPU.json

Plans each job below for one GPU of the catalogue (GPU, e.g. h200), then trains it there by that plan, and tells what
the run itself printed at its end: step, samples per second, peak memory, epoch, save and total, promised and measured.
Run it on a machine with that GPU; PYTHON (default python3) is one that has the wheel torch==2.11.0, whose libraries
are used. LOCKSTEP_BUILD (default build) has the program. A row is printed for each job that ends; exit code 1 when one
does not.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep"
# What each job has beside a batch, bf16 and 240 steps of made-up samples.
JOBS = {
    "resnet50-128": {"model.name": "resnet50", "training.global_batch": 128},
    "resnet50-256-bytes": {"model.name": "resnet50", "training.global_batch": 256, "data.pixels": "uint8"},
    "resnet50-512-in-4": {"model.name": "resnet50", "training.global_batch": 512, "training.micro_batch": 128,
                          "training.ema_decay": 0.999, "data.pixels": "bf16"},
    "resnet50-128-fp32": {"model.name": "resnet50", "training.global_batch": 128, "training.precision": "fp32"},
    "resnet50-128-replayed": {"model.name": "resnet50", "training.global_batch": 128, "training.replay_every": 4,
                              "data.pixels": "uint8"},
    "resnet50-128-evaluated": {"model.name": "resnet50", "training.global_batch": 128, "data.pixels": "uint8",
                               "data.validate": "synthetic", "evaluation.batch": 1024, "evaluation.every_epochs": 0.5},
    "resnet50-128-saved": {"model.name": "resnet50", "training.global_batch": 128, "data.pixels": "uint8",
                           "checkpoint.every_epochs": 0.25},
    "resnet18-512-amp": {"model.name": "resnet18", "training.global_batch": 512, "training.precision": "amp",
                         "data.pixels": "uint8"},
    "resnet152-64": {"model.name": "resnet152", "training.global_batch": 64},
    "densenet169-96": {"model.name": "densenet169", "training.global_batch": 96, "data.pixels": "uint8"},
    "densenet201-64": {"model.name": "densenet201", "training.global_batch": 64, "data.pixels": "uint8"},
    "resnet18-8-fp32": {"model.name": "resnet18", "training.global_batch": 8, "training.precision": "fp32",
                        "data.pixels": "uint8"},
    # Beside the CUDA graph the smaller last batch of each epoch.
    "resnet50-128-odd": {"model.name": "resnet50", "training.global_batch": 128, "data.pixels": "uint8",
                         "data.samples": 119 * 128 + 70},
    "googlenet-256": {"model.name": "googlenet", "training.global_batch": 256, "data.pixels": "uint8"},
    "efficientnet_lite0-128": {"model.name": "efficientnet_lite0", "training.global_batch": 128},
    "vit_base-64": {"model.name": "vit_base_patch16_224", "training.global_batch": 64,
                    "training.optimizer.name": "adamw", "training.optimizer.lr": 1e-4},
    "vit_large-64-bytes": {"model.name": "vit_large_patch16_224", "training.global_batch": 64, "data.pixels": "uint8",
                           "training.optimizer.name": "adamw", "training.optimizer.lr": 1e-4},
    "vit_small-256-lamb": {"model.name": "vit_small_patch16_224", "training.global_batch": 256, "data.pixels": "bf16",
                           "training.optimizer.name": "lamb", "training.optimizer.lr": 1e-3},
}
STEPS = 240
START_UP = 2.1  # seconds that a plan counts on GPUs (Assumptions of lockstep/forecast/trial.h)
OLD_START_UP = 30  # likewise, before it was in a run's total; it was measured with the first step


def libraries_of(python):
    found = subprocess.run([python, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"],
                           capture_output=True, text=True, check=True).stdout.strip()
    return [f"{found}/torch/lib"] + [str(folder) for folder in pathlib.Path(found, "nvidia").glob("*/lib")]


def run(words, folder, environment):
    done = subprocess.run([LOCKSTEP, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"lockstep {' '.join(words)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def job_words(changes):
    fixed = {"data.image_size": 224, "model.classes": 1000, "training.precision": "bf16", "training.steps": STEPS,
             "data.samples": STEPS // 2 * changes["training.global_batch"]}  # two epochs
    return [word for key, value in {**fixed, **changes}.items() for word in ("--set", f"{key}={value}")]


def measure(name, changes, gpu, folder, environment):
    (folder / "job.json").write_text(json.dumps({"name": name, "data": {"train": "synthetic"}}))
    sets = job_words(changes)
    run(["plan", "job.json", "--on", gpu, "--no-search", "--json", "plan.json", *sets], folder, environment)
    run(["train", "job.json", "--plan", "plan.json", "--device", "cuda", "--run", name, *sets], folder, environment)
    events = [json.loads(line) for line in (folder / name / "journal.jsonl").read_text().splitlines()]
    told = [event for event in events if event["event"] == "promise"][-1]
    row = {"what": "promise against fact, train --plan", "job": name, "model": changes["model.name"],
           "batch": changes["training.global_batch"], "precision": changes.get("training.precision", "bf16"),
           "sets": {key: value for key, value in changes.items() if key not in ("model.name", "training.global_batch")}}
    for fact in told["rows"]:
        key = fact["what"].replace(" ", "_")
        row[key] = {"promised": fact["promised"], "low": fact["low"], "high": fact["high"],
                    "measured": fact["measured"], "deviation": fact["deviation"], "inside": fact["inside"]}
    row["why"] = told["why"]
    return row


def total_of(row):
    """Promised and measured, each with the start-up, whatever the rule was when the row was made."""
    total, start_up = row["total"], row["start-up"]
    if start_up["promised"] != OLD_START_UP:
        return total["promised"], total["measured"]
    return total["promised"] + START_UP, total["measured"] + start_up["measured"] - row["step"]["promised"]


def print_totals(path):
    off = []
    for row in json.loads(pathlib.Path(path).read_text()):
        promised, measured = total_of(row)
        off.append(abs(measured / promised - 1))
        print(f"{row['job']:24} {promised:6.2f} s promised, {measured:6.2f} s measured: {measured / promised - 1:+.1%}")
    print(f"median {statistics.median(off):.1%}, {sum(one <= 0.1 for one in off)} of {len(off)} within 10 %")


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: measure_promises.py GPU [NAME...] | --totals FILE")
    if sys.argv[1] == "--totals":
        return print_totals(sys.argv[2])
    gpu, names = sys.argv[1], sys.argv[2:] or list(JOBS)
    libraries = libraries_of(os.environ.get("PYTHON", "python3")) + [os.environ.get("LD_LIBRARY_PATH", "")]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, libraries)))
    commit = run(["--version"], ROOT, environment).split("(")[-1].rstrip(")\n")
    named = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    machine = f"{named.stdout.splitlines()[0]}, {os.cpu_count()} cores"
    failed, rows = 0, []
    with tempfile.TemporaryDirectory(prefix="lockstep-promises-") as folder:
        for name in names:
            try:
                row = measure(name, JOBS[name], gpu, pathlib.Path(folder), environment)
            except (RuntimeError, KeyError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed += 1
                continue
            row.update(peer=None, command=f"scripts/measure_promises.py {gpu} {name}", commit=commit, machine=machine,
                       ratio=round(row["step"]["measured"] / row["step"]["promised"], 3))
            rows.append(row)
            print(name, {key: (value["measured"] / value["promised"]) for key, value in row.items()
                         if isinstance(value, dict) and "promised" in value}, file=sys.stderr, flush=True)
            print((",\n" if len(rows) > 1 else "[\n") + json.dumps(row), end="", flush=True)
    print("\n]" if rows else "[]")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
