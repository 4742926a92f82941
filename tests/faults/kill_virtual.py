#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Virtual ranks: one SHA-256 of all state on 1, 2, 3 and 4 ranks, and for a run killed on 4, then on 2, ended on 3.

A perceptron, a ResNet-18 (batch norms) and a ViT with dropout; SGD and AdamW, clipping, a moving average and a last
batch of 50. Real mpirun, SIGKILL to launcher and ranks in mid-epoch. kill_virtual.py [BUILD]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")
SAMPLES = 64 * 3 + 50  # to train with: a last batch of 50
DRAWN = 302  # of which a fifth is set aside for validation
SGD = {"name": "sgd", "lr": 0.02}
ADAMW = {"name": "adamw", "lr": 0.001, "weight_decay": 0.05}
VIT = {"name": "vit_tiny_patch16_224", "width": 48, "depth": 2, "heads": 3, "patch": 8, "dropout": 0.1, "drop_path": 0.2}
JOBS = {
    "mlp": ({"name": "mlp"}, SGD, {}),
    "resnet18": ({"name": "resnet18", "width": 8}, SGD, {}),
    "vit": (VIT, ADAMW, {"mixup": 0.3, "label_smoothing": 0.1}),
}


def job(model, optimizer, more):
    training = {"global_batch": 64, "virtual_ranks": 8, "epochs": 6, "optimizer": optimizer, "clip_norm": 1.0}
    return {
        "name": "virtual",
        "data": {"train": "set/train", "image_size": 32, "threads": 1},
        "model": model,
        "training": training | {"ema_decay": 0.99} | more,
        "checkpoint": {"every_epochs": 0.5},
    }


def start(folder, name, run, ranks):
    words = [LOCKSTEP, "train", f"{name}.json", "--run", run, "--json", f"{run}.json"]
    log = open(folder / f"{run}.log", "ab")
    words += ["--ranks", str(ranks)] if ranks > 1 else []
    return subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def finish(folder, name, run, ranks):
    """The hash of all state of a run that goes to its end."""
    if start(folder, name, run, ranks).wait() != 0:
        sys.exit((folder / f"{run}.log").read_text())
    return json.loads((folder / f"{run}.json").read_text())["state_sha256"]


def events(folder, run):
    path = folder / run / "journal.jsonl"
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            pass  # the line that the kill cut off
    return rows


def kill_after_a_save(folder, name, run, ranks, saves):
    process = start(folder, name, run, ranks)
    while process.poll() is None and sum(row["event"] == "save" for row in events(folder, run)) < saves:
        time.sleep(0.05)
    if process.poll() is not None:
        sys.exit("ended before the kill:\n" + (folder / f"{run}.log").read_text())
    subprocess.run(["pkill", "-9", "-s", str(process.pid)], check=False)  # launcher and ranks, its session only
    process.wait()


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-virtual-") as place:
        folder = pathlib.Path(place)
        drawn = [LOCKSTEP, "prep", "--synthesize", "shapes", "--count", str(DRAWN), "--classes", "4"]
        subprocess.run(drawn + ["--image-size", "40", "--to", "set"], cwd=folder, check=True, capture_output=True)
        found = len(list((folder / "set/train").rglob("*.*")))
        if found != SAMPLES:
            sys.exit(f"{found} pictures to train with, {SAMPLES} are expected")
        for name, parts in JOBS.items():
            (folder / f"{name}.json").write_text(json.dumps(job(*parts)))
            hashes = {f"{ranks} ranks": finish(folder, name, f"{name}-{ranks}", ranks) for ranks in (1, 2, 3, 4)}
            killed = f"{name}-killed"
            kill_after_a_save(folder, name, killed, 4, 2)
            kill_after_a_save(folder, name, killed, 2, 5)
            hashes["killed"] = finish(folder, name, killed, 3)
            ranks = [row["ranks"] for row in events(folder, killed) if row["event"] in ("start", "resume")]
            good = len(set(hashes.values())) == 1 and ranks == [4, 2, 3]
            print(f"{name}: killed on ranks {ranks}: {hashes if not good else 'all ' + hashes['killed']}", flush=True)
            passed, failed = passed + good, failed + (not good)
    print(f"kill_virtual: {passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
