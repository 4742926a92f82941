#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our kernels beside PyTorch's on one GPU: measure_fused.py OUT [PART...]

Parts: speed (the steps of WORKS beside PyTorch eager, in turns in one run), compiled (some of them beside
torch.compile), reference (ours without our kernels), loss (500 steps with fused and with reference kernels, three seeds
each: mean loss of the last 50), operators (what each operator of a step costs). Writes OUT/<part>.json. Input is
synthetic and stays on the GPU, but for `loss`. PYTHON (default python3) has the wheel torch==2.11.0, whose libraries are
used, and torchvision; LOCKSTEP_BUILD (default build) has the program.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from measure_promises import LOCKSTEP, libraries_of

WORKS = [  # model, batch, precision, optimizer, steps of a round
    ("resnet50", 256, "bf16", "sgd", 10),
    ("resnet50", 256, "amp", "sgd", 10),
    ("resnet50", 32, "bf16", "sgd", 20),
    ("resnet152", 64, "bf16", "sgd", 10),
    ("densenet121", 128, "bf16", "sgd", 10),
    ("googlenet", 256, "bf16", "sgd", 10),
    ("vit_base_patch16_224", 128, "bf16", "adamw", 10),
    ("vit_giant_patch14_224", 64, "bf16", "adamw", 3),
]
COMPILED = [WORKS[0], WORKS[6]]
ROUNDS = 5
SEEDS = (1, 2, 3)
LOSS_WORKS = [  # model, batch, pixels, rate
    ("resnet50", 64, 96, 0.05),
    ("vit_tiny_patch16_224", 64, 96, None),
]


def python():
    return os.environ.get("PYTHON", "python3")


def environment():
    libraries = libraries_of(python()) + [os.environ.get("LD_LIBRARY_PATH", "")]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, reversed(libraries))))


def bench(work, *more):
    model, batch, precision, optimizer, steps = work
    words = ["bench", "step", "--model", model, "--batch", str(batch), "--precision", precision, "--optimizer", optimizer,
             "--steps", str(steps), "--rounds", str(ROUNDS), "--device", "cuda", "--here", "--json", "-", *more]
    start = time.monotonic()
    done = subprocess.run([LOCKSTEP, *words], env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{model} {batch}: exit code {done.returncode}: {done.stderr[-1500:]}", file=sys.stderr)
        return []
    rows = json.loads(done.stdout[done.stdout.index("[\n"):] if "[\n" in done.stdout else done.stdout)
    rows = rows if isinstance(rows, list) else [rows]
    for row in rows:
        row["input"] = "synthetic, on the GPU"
        print(f"{time.monotonic() - start:5.0f} s  {row['model']} b{row['batch']} {row['precision']} "
              f"{row.get('kernels')}: {row['samples_per_second']:.0f} img/s, peer {row.get('peer_samples_per_second', 0):.0f}, "
              f"ratio {row.get('ratio', 0):.2f}, reserved {row.get('peak_reserved', 0) / 1e9:.2f} GB, peer "
              f"{row.get('peer_peak_reserved', 0) / 1e9:.2f}", file=sys.stderr, flush=True)
    return rows


def last_loss(model, batch, pixels, rate, kernels, seed):
    """The mean loss of steps 451 to 500: the tenth epoch of 50 steps."""
    sets = {"data.image_size": pixels, "data.samples": 50 * batch, "data.augment": "none", "model.classes": 100,
            "model.name": model, "training.global_batch": batch, "training.steps": 500, "training.precision": "bf16",
            "training.kernels": kernels, "training.seed": seed, "data.pixels": "uint8"}
    if rate:
        sets["training.optimizer.lr"] = rate
    else:
        sets.update({"training.optimizer.name": "adamw", "training.optimizer.lr": 5e-4})
    with tempfile.TemporaryDirectory(prefix="lockstep-fused-") as folder:
        path = pathlib.Path(folder)
        (path / "job.json").write_text(json.dumps({"name": "fused", "data": {"train": "synthetic"}}))
        words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        done = subprocess.run([LOCKSTEP, "train", "job.json", "--device", "cuda", "--run", "run", *words], cwd=path,
                              env=environment(), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-1500:])
        events = [json.loads(line) for line in (path / "run/journal.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    return epochs[0]["loss"], epochs[-1]["loss"], epochs[-1]["samples_per_second"]


def losses():
    rows = []
    for work in LOSS_WORKS:
        told = {kernels: [last_loss(*work, kernels, seed) for seed in SEEDS] for kernels in ("fused", "reference")}
        last = {kernels: [one[1] for one in runs] for kernels, runs in told.items()}
        mean = {kernels: sum(values) / len(values) for kernels, values in last.items()}
        rows.append({"what": "mean loss of steps 451 to 500 of 500, synthetic input, bf16", "model": work[0],
                     "batch": work[1], "pixels": work[2], "seeds": list(SEEDS), "first_50": told["fused"][0][0],
                     "fused": last["fused"], "reference": last["reference"],
                     "ratio": mean["fused"] / mean["reference"],
                     "samples_per_second": {kernels: runs[-1][2] for kernels, runs in told.items()}})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def operators(out):
    cells = [{"model": model, "batch": batch, "precision": precision, "optimizer": optimizer, "kernels": "fused"}
             for model, batch, precision, optimizer, _ in WORKS]
    (out / "cells_asked.json").write_text(json.dumps(cells))
    subprocess.run([LOCKSTEP, "bench", "cells", "--device", "cuda", "--here", "--cells", out / "cells_asked.json",
                    "--operators", out / "operators.json", "--json", out / "cells.json"], env=environment(), check=False)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: measure_fused.py OUT [PART...]")
    out, parts = pathlib.Path(sys.argv[1]), sys.argv[2:] or ["speed", "compiled", "reference", "loss", "operators"]
    out.mkdir(parents=True, exist_ok=True)
    for part in parts:
        rows = []
        works = {"speed": WORKS, "reference": WORKS, "compiled": COMPILED}.get(part, [])
        more = {"speed": ["--peer", python()], "compiled": ["--peer", python(), "--compiled"],
                "reference": ["--set", "training.kernels=reference"]}.get(part, [])
        for work in works:
            rows += bench(work, *more)
            (out / f"{part}.json").write_text(json.dumps(rows, indent=1))
        if part == "loss":
            (out / "loss.json").write_text(json.dumps(losses(), indent=1))
        if part == "operators":
            operators(out)


if __name__ == "__main__":
    main()
