#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our kernels beside PyTorch's on one GPU: measure_fused.py OUT [PART...]

Parts: speed (the steps of WORKS beside PyTorch eager, in turns in one run, each with what `plan` says of its step and
memory), ours (the same without the peer), compiled (some of them beside torch.compile), reference (ours without our kernels), loss (500 steps with fused
and with reference kernels, three seeds each: mean loss of the last 50), photographs (ResNet-50 from JPEG shards on disk,
evaluation included, and what the loader gives by itself; PHOTOGRAPHS names a folder of some), accuracy (seconds until a
fine-tuned ResNet-18 names TARGET of the held-back photographs rightly, fused and reference kernels, ten seeds each; PETS
names shards of photographs, `lockstep prep PETS --to SHARDS --max-side 144`, and WEIGHTS a ResNet-18), trouble (out of
memory, company on the GPU, --profile, energy), operators (what each operator of a step costs). Writes OUT/<part>.json, a
row as soon as it is there; a row that fails costs itself alone. Input of the steps is synthetic and stays on the GPU. GPU
(default h200) is the catalogue's name of it. PYTHON (default python3) has the wheel torch==2.11.0, whose libraries are
used, and torchvision; LOCKSTEP_BUILD (default build) has the program. ONLY chooses works by a part of their name.
"""
import json
import os
import pathlib
import statistics
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
ROUNDS = int(os.environ.get("ROUNDS", 5))
SEEDS = tuple(range(1, 1 + int(os.environ.get("SEEDS", 3))))
LOSS_WORKS = [  # model, batch, pixels, rate
    ("resnet50", 64, 96, 0.05),
    ("vit_tiny_patch16_224", 64, 96, None),
]


def python():
    return os.environ.get("PYTHON", "python3")


def environment():
    libraries = libraries_of(python()) + [os.environ.get("LD_LIBRARY_PATH", "")]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, reversed(libraries))))


def planned(work):
    """What the plan of the same step says, without a GPU."""
    model, batch, precision, optimizer, _ = work
    job = {"name": "planned", "data": {"train": "synthetic", "samples": 100 * batch, "image_size": 224},
           "model": {"name": model, "classes": 1000},
           "training": {"global_batch": batch, "precision": precision, "steps": 100, "optimizer": {"name": optimizer}}}
    options = {}
    with tempfile.TemporaryDirectory(prefix="lockstep-plan-") as folder:
        path = pathlib.Path(folder)
        (path / "job.json").write_text(json.dumps(job))
        # Memory as the bench has its input, in fp32; the step with input that is there before it, as bytes are.
        for pixels in ("fp32", "uint8"):
            done = subprocess.run([LOCKSTEP, "plan", "job.json", "--on", os.environ.get("GPU", "h200"), "--no-search",
                                   "--set", f"data.pixels={pixels}", "--json", f"{pixels}.json"], cwd=path,
                                  env=environment(), capture_output=True, text=True)
            if not (path / f"{pixels}.json").exists():
                print(f"plan of {model} {batch}: {done.stderr[-800:]}", file=sys.stderr)
                return {}
            options[pixels] = json.loads((path / f"{pixels}.json").read_text())["options"][0]
    return {"planned_milliseconds": options["uint8"]["step_seconds"]["value"] * 1000,
            "planned_peak_reserved": options["fp32"]["memory"]["peak_reserved_bytes"],
            "planned_peak_allocated": options["fp32"]["memory"]["peak_allocated_bytes"]}


def beside_plan(row):
    if "planned_milliseconds" not in row:
        return ""
    step = row["planned_milliseconds"] / row["milliseconds"] - 1
    memory = row["planned_peak_reserved"] / row["peak_reserved"] - 1
    return f"; plan: {row['planned_milliseconds']:.1f} ms of {row['milliseconds']:.1f} ({step:+.1%}), memory {memory:+.2%}"


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
        if row.get("kernels") == "fused":
            row.update(planned(work))
        print(f"{time.monotonic() - start:5.0f} s  {row['model']} b{row['batch']} {row['precision']} "
              f"{row.get('kernels')}: {row['samples_per_second']:.0f} img/s, peer {row.get('peer_samples_per_second', 0):.0f}, "
              f"ratio {row.get('ratio', 0):.2f}, reserved {row.get('peak_reserved', 0) / 1e9:.2f} GB, peer "
              f"{row.get('peer_peak_reserved', 0) / 1e9:.2f}{beside_plan(row)}", file=sys.stderr, flush=True)
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


def losses(_):
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


CLASSES = 10
COPIES = 40000  # images of the photographs' set
SIDE = (500, 375)
SHRUNK = """
import sys, pathlib
from concurrent.futures import ThreadPoolExecutor
from PIL import Image
source, target, copies, classes, width, height = sys.argv[1], pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:])
files = sorted(pathlib.Path(source).rglob("*.jpg"))
def store(i):
    picture = Image.open(files[i]).convert("RGB").resize((width, height), Image.BICUBIC)
    picture.save(target / f"{i}.jpg", quality=92)
target.mkdir(parents=True)
with ThreadPoolExecutor(16) as pool: list(pool.map(store, range(len(files))))
for i in range(copies):
    folder = target.parent / "set" / str(i % classes)
    if i < classes: folder.mkdir(parents=True)
    (folder / f"{i}.jpg").hardlink_to(target / f"{i % len(files)}.jpg")
print(len(files), "photographs,", sum((target / f"{i}.jpg").stat().st_size for i in range(len(files))) // len(files), "bytes each")
"""


def lockstep(words, folder, seconds=240):
    return subprocess.run([LOCKSTEP, *map(str, words)], cwd=folder, env=environment(), capture_output=True, text=True,
                          timeout=seconds)


def events_of(run):
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


def photograph_job(precision, epochs):
    return {"name": "photographs", "data": {"train": "shards/train", "validate": "shards/validate", "image_size": 224,
                                            "pixels": "uint8", "crop_scale_min": 0.08},
            "model": {"name": "resnet50", "classes": CLASSES},
            "training": {"global_batch": 256, "epochs": epochs, "precision": precision},
            "evaluation": {"every_epochs": 1}}


def photographs(_):
    """Whole epochs behind the first one: images trained over the seconds of steps, evaluation and saves."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="lockstep-photographs-") as folder:
        path = pathlib.Path(folder)
        made = subprocess.run([python(), "-c", SHRUNK, os.environ["PHOTOGRAPHS"], path / "photos", str(COPIES),
                               str(CLASSES), str(SIDE[0]), str(SIDE[1])], capture_output=True, text=True)
        print(made.stdout, made.stderr[-800:], file=sys.stderr)
        done = lockstep(["prep", "set", "--to", "shards", "--here"], path)
        print(done.stdout[-400:], done.stderr[-800:], file=sys.stderr)
        loader = lockstep(["bench", "loader", "--shards", "shards/train", "--threads", os.cpu_count(), "--batch", 256,
                           "--epochs", 2, "--set", "data.image_size=224", "--here", "--json", "loader.json"], path)
        if (path / "loader.json").exists():
            rows += [dict(row, what="the loader by itself") for row in json.loads((path / "loader.json").read_text())]
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        else:
            print(loader.stderr[-800:], file=sys.stderr)
        for precision in ("amp", "bf16"):
            (path / "job.json").write_text(json.dumps(photograph_job(precision, 4)))
            done = lockstep(["train", "job.json", "--device", "cuda", "--run", precision, "--here"], path)
            if done.returncode != 0:
                print(f"photographs: exit code {done.returncode}: {done.stderr[-1500:]}", file=sys.stderr)
                continue
            events = events_of(path / precision)
            ends = [event for event in events if event["event"] == "epoch"]
            steps = [event for event in events if event["event"] == "step" and event["t"] > ends[0]["t"]]
            seconds = ends[-1]["t"] - ends[0]["t"]
            rows.append({"what": "training from JPEG shards on disk, evaluation included", "model": "resnet50",
                         "batch": 256, "precision": precision, "cores": os.cpu_count(),
                         "data": f"{made.stdout.strip()}, scaled to {SIDE[0]} x {SIDE[1]}, {COPIES} copies in shards",
                         "samples_per_second": sum(event["samples"] for event in steps) / seconds,
                         "steps_alone": sum(event["samples"] for event in steps) / sum(e["seconds"] for e in steps),
                         "waited_for_data": sum(e["data"] for e in steps) / sum(e["seconds"] for e in steps),
                         "joules_per_sample": sum(e.get("joules", 0) for e in steps) / sum(e["samples"] for e in steps),
                         "epochs": [event["samples_per_second"] for event in ends]})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


TARGET = 0.75  # share of the held-back photographs; chosen before the runs
ACCURACY_SEEDS = tuple(range(1, 11))


def accuracy_job(kernels, seed):
    shards = pathlib.Path(os.environ["PETS"]).resolve()
    return {"name": f"{kernels}-{seed}",
            "data": {"train": str(shards / "train"), "validate": str(shards / "validate"), "image_size": 128,
                     "pixels": "uint8"},
            "model": {"name": "resnet18", "classes": 37, "weights": str(pathlib.Path(os.environ["WEIGHTS"]).resolve())},
            "training": {"global_batch": 64, "epochs": 12, "precision": "bf16", "kernels": kernels, "seed": seed,
                         "label_smoothing": 0.1, "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 1e-4},
                         "schedule": {"name": "cosine", "warmup_epochs": 1}},
            "evaluation": {"every_epochs": 1}, "checkpoint": {"every_epochs": 0}}


def seconds_to_target(events):
    """From the session's start to the first evaluation that reached it: all of it, and the steps alone."""
    start = next(event["t"] for event in events if event["event"] == "start")
    judged = [event for event in events if event["event"] == "evaluate"]
    reached = next((event for event in judged if event["top1"] >= TARGET), None)
    if reached is None:
        return None, None, judged[-1]["top1"]
    steps = [event for event in events if event["event"] == "step" and event["step"] <= reached["step"]]
    return reached["t"] - start, sum(step["seconds"] for step in steps), judged[-1]["top1"]


def accuracy(out):
    """In turns, so that what changes with time on the machine reaches both."""
    runs = {"fused": [], "reference": []}
    with tempfile.TemporaryDirectory(prefix="lockstep-accuracy-") as folder:
        path = pathlib.Path(folder)
        for seed in ACCURACY_SEEDS:
            for kernels, told in runs.items():
                (path / "job.json").write_text(json.dumps(accuracy_job(kernels, seed)))
                run = f"{kernels}-{seed}"
                done = lockstep(["train", "job.json", "--device", "cuda", "--run", run, "--here"], path)
                if done.returncode != 0:
                    raise RuntimeError(done.stderr[-1500:])
                wall, steps, last = seconds_to_target(events_of(path / run))
                told.append({"seed": seed, "seconds": wall, "seconds_of_steps": steps, "top1": last})
                print(kernels, json.dumps(told[-1]), file=sys.stderr, flush=True)
                (out / "accuracy.json").write_text(json.dumps(runs, indent=1))
    row = {"what": f"seconds until top-1 {TARGET} on held-back photographs, ResNet-18 fine-tuned, 37 breeds, 128 pixels",
           "model": "resnet18", "batch": 64, "precision": "bf16", "seeds": list(ACCURACY_SEEDS)}
    for kernels, told in runs.items():
        for key in ("seconds", "seconds_of_steps", "top1"):
            values = [run[key] for run in told if run[key] is not None]
            row[f"{kernels}_{key}"] = values
            row[f"{kernels}_mean_{key}"] = statistics.mean(values)
            row[f"{kernels}_deviation_{key}"] = statistics.stdev(values)
    return [row]


def trouble(out):
    """What a run says where something is wrong, and what --profile leaves behind."""
    rows = []
    job = {"name": "trouble", "data": {"train": "synthetic", "samples": 40 * 256, "image_size": 224, "pixels": "uint8"},
           "model": {"name": "resnet50", "classes": 100},
           "training": {"global_batch": 256, "epochs": 1, "precision": "bf16"}}
    with tempfile.TemporaryDirectory(prefix="lockstep-trouble-") as folder:
        path = pathlib.Path(folder)
        (path / "job.json").write_text(json.dumps(job))
        train = ["train", "job.json", "--device", "cuda", "--here"]
        large = ["--set", "training.global_batch=8192", "--set", "data.samples=16384", "--set", "training.precision=fp32"]
        done = lockstep([*train, "--run", "large", *large], path)
        rows.append({"what": "out of memory", "exit_code": done.returncode, "said": done.stderr[-700:]})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        other = subprocess.Popen([python(), "-c", "import torch, time; x = torch.zeros(2**30, device='cuda'); "
                                  "print('there', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
        other.stdout.readline()
        done = lockstep([*train, "--run", "company", "--profile"], path)
        other.kill()
        profile = path / "company/profile.json"
        trace = json.loads(profile.read_text()) if profile.exists() else {}
        (out / "profile.json").write_text(json.dumps(trace))
        kernels = [event for event in trace.get("traceEvents", []) if event.get("pid") == 3 and event["ph"] == "X"]
        steps = [event for event in events_of(path / "company") if event["event"] == "step"]
        rows.append({"what": "company on the GPU, and a profile", "exit_code": done.returncode,
                     "said": [line for line in done.stderr.splitlines() if "note" in line or "profile" in line],
                     "kernels_in_profile": len(kernels),
                     "milliseconds_of_kernels": sum(event["dur"] for event in kernels) / 5e3,
                     "joules": sum(step.get("joules", 0) for step in steps)})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def operators(out):
    cells = [{"model": model, "batch": batch, "precision": precision, "optimizer": optimizer, "kernels": "fused"}
             for model, batch, precision, optimizer, _ in WORKS]
    (out / "cells_asked.json").write_text(json.dumps(cells))
    subprocess.run([LOCKSTEP, "bench", "cells", "--device", "cuda", "--here", "--cells", out / "cells_asked.json",
                    "--operators", out / "operators.json", "--json", out / "cells.json"], env=environment(), check=False)


PARTS = {"speed": None, "ours": None, "compiled": None, "reference": None, "loss": losses, "photographs": photographs,
         "accuracy": accuracy, "trouble": trouble, "operators": None}


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: measure_fused.py OUT [PART...]")
    out, parts = pathlib.Path(sys.argv[1]), sys.argv[2:] or [part for part in PARTS if part != "ours"]
    out.mkdir(parents=True, exist_ok=True)
    for part in parts:
        rows = []
        works = {"speed": WORKS, "ours": WORKS, "reference": WORKS, "compiled": COMPILED}.get(part, [])
        more = {"speed": ["--peer", python()], "compiled": ["--peer", python(), "--compiled"],
                "reference": ["--set", "training.kernels=reference"]}.get(part, [])
        for work in works:
            if os.environ.get("ONLY", "") in f"{work[0]}-{work[1]}-{work[2]}":
                rows += bench(work, *more)
                (out / f"{part}.json").write_text(json.dumps(rows, indent=1))
        try:
            if part in PARTS and PARTS[part]:
                (out / f"{part}.json").write_text(json.dumps(PARTS[part](out), indent=1))
        except Exception as error:  # the next part counts
            print(f"{part}: {error!r}", file=sys.stderr, flush=True)
        if part == "operators":
            operators(out)


if __name__ == "__main__":
    main()
