#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Virtual ranks: one SHA-256 of all state on 1, 2, 3 and 4 ranks, and for a run killed on 4, then on 2, ended on 3.

A perceptron, a ResNet-18 (batch norms) and a ViT with dropout; SGD and AdamW, the latter with whole states on every rank
and with states cut over the ranks (ZeRO); clipping, a moving average and a last batch of 50. Real mpirun, SIGKILL to
launcher and ranks in mid-epoch. kill_virtual.py [JOB ...]: all of them, or these.
"""
import json
import subprocess
import sys

from supervised import LOCKSTEP, Run, build_hold, folder_for, until, verdict

SAMPLES = 64 * 3 + 50  # to train with: a last batch of 50
DRAWN = 302  # of which a fifth is set aside for validation
SGD = {"name": "sgd", "lr": 0.02}
ADAMW = {"name": "adamw", "lr": 0.001, "weight_decay": 0.05}
VIT = {"name": "vit_tiny_patch16_224", "width": 48, "depth": 2, "heads": 3, "patch": 8, "dropout": 0.1, "drop_path": 0.2}
JOBS = {
    "mlp": ({"name": "mlp"}, SGD, {}),
    "resnet18": ({"name": "resnet18", "width": 8}, SGD, {}),
    "vit": (VIT, ADAMW, {"mixup": 0.3, "label_smoothing": 0.1}),
    "zero": (VIT, ADAMW, {"zero": 1}),
}


def job(model, optimizer, more):
    epochs = 6 if model["name"] == "resnet18" else 14
    training = {"global_batch": 64, "virtual_ranks": 8, "epochs": epochs, "optimizer": optimizer, "clip_norm": 1.0}
    return {
        "name": "virtual",
        "data": {"train": "set/train", "image_size": 32, "threads": 1},
        "model": model,
        "training": training | {"ema_decay": 0.99} | more,
        "checkpoint": {"every_epochs": 0.5},
    }


def kill_after(run, ranks, saves):
    """Goes on with so many ranks until these have saved so often: what others saved before may have been more or less."""
    run.hold(run.saved() + 2 * (saves + 2))  # a save every two steps: enough of them, and it does not end before the kill
    run.start(ranks)
    until(lambda: not run.running() or len(run.since_start("save")) >= saves, 300, 0.01)
    if not run.running():
        sys.exit("ended before the kill:\n" + run.tail())
    run.kill()
    run.let_go()


def state(run, ranks):
    """The hash of all state when it has come to its end with so many ranks."""
    return run.finish(ranks).ended()["state_sha256"]


def main():
    passed = failed = kills = 0
    with folder_for("virtual") as folder:
        drawn = [LOCKSTEP, "prep", "--synthesize", "shapes", "--count", str(DRAWN), "--classes", "4"]
        subprocess.run(drawn + ["--image-size", "40", "--to", "set"], cwd=folder, check=True, capture_output=True)
        found = len(list((folder / "set/train").rglob("*.*")))
        if found != SAMPLES:
            sys.exit(f"{found} images to train with, {SAMPLES} are expected")
        library = build_hold(folder)
        for name in sys.argv[1:] or JOBS:
            (folder / f"{name}.json").write_text(json.dumps(job(*JOBS[name])))
            named = lambda what: Run(folder, f"{name}-{what}", 1, job=f"{name}.json", preload=library)
            hashes = {f"{ranks} ranks": state(named(ranks), ranks) for ranks in (1, 2, 3, 4)}
            killed = named("killed")
            kill_after(killed, 4, 2)
            kill_after(killed, 2, 2)
            hashes["killed"] = state(killed, 3)
            ranks = [row["ranks"] for row in killed.events("start", "resume")]
            good = len(set(hashes.values())) == 1 and ranks == [4, 2, 3]
            print(f"{name}: killed on ranks {ranks}: {hashes if not good else 'all ' + hashes['killed']}", flush=True)
            passed, failed, kills = passed + good, failed + (not good), kills + len(ranks) - 1
    return verdict("kill_virtual", passed, failed, kills)


if __name__ == "__main__":
    sys.exit(main())
