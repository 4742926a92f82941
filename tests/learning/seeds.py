#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A seed study: the quickstart's job from five seeds, which are other weights and another order of the samples.

One run tells little about a change of the recipe; this tells how far runs lie from each other. The mean must reach its
target, none may fall far behind, and no two may be the same run.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin" / "lockstep"
SEEDS = range(1, 6)
MEAN = 0.98
WORST = 0.96


def lockstep(folder, *words):
    done = subprocess.run([str(LOCKSTEP), *words], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{done.stdout}lockstep {' '.join(words)}: exit code {done.returncode}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        lockstep(folder, "prep", "--synthesize", "shapes", "--count", "4000", "--classes", "10", "--to", "quickstart/shapes")
        found, weights = [], set()
        for seed in SEEDS:
            lockstep(folder, "train", str(ROOT / "examples/shapes.json"), "--run", f"run{seed}", "--set", f"training.seed={seed}")
            lockstep(folder, "eval", f"run{seed}", "--json", "eval.json")
            found.append(json.loads((folder / "eval.json").read_text())["top1"])
            weights.add((folder / f"run{seed}" / "weights.safetensors").read_bytes())
            print(f"seed {seed}: top-1 {found[-1]:.4f}", flush=True)
    error = statistics.stdev(found) / len(found) ** 0.5
    print(f"top-1 of {len(found)} seeds: mean {statistics.mean(found):.4f} +- {error:.4f}, worst {min(found):.4f}")
    if len(weights) < len(found):
        sys.exit("two seeds gave the same weights")
    if statistics.mean(found) < MEAN or min(found) < WORST:
        sys.exit(f"a mean of {MEAN} is wanted, and {WORST} of the worst")


main()
