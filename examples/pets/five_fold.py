#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The default recipe on five folds of the Oxford-IIIT Pet photographs: five_fold.py PETS [options]

PETS holds images/ and annotations/trainval.txt. Each breed's images go round over the five folds in the order of the
hash of their names: the same folds everywhere. A fold is trained on the other four by a job that says no more than
where the data and the weights are; the fold itself takes no part in training (the job has no validation), and the last
weights are judged on it once, at the end.

  --fold N [N ...]   only these (0 to 4); default: all, one after the other
  --weights FILE     EfficientNet-Lite0 as safetensors (default OUT/efficientnet_lite0.safetensors, fetched when it is
                     not there: lockstep get weights efficientnet_lite0)
  --out DIR          folders of links, runs and rows.json (default five_fold)
  --set KEY=VALUE    override a key of the job; may stand several times
  --summary          only read what is there: mean and standard error of the folds that are done

`lockstep` must be on the PATH, or named by LOCKSTEP. OMP_NUM_THREADS, where it is set, is the number of compute threads.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import time

FOLDS = 5


def list_images(pets):
    listing = pets / "annotations/trainval.txt"
    if not listing.exists():
        sys.exit(f"{listing}: there is no such file\n  fix: give the folder that holds images/ and annotations/")
    lines = [line.split() for line in listing.read_text().splitlines() if line and not line.startswith("#")]
    return [fields[0] for fields in lines]


def fold_of_images(names):
    breeds = {}
    for name in names:
        breeds.setdefault(name.rpartition("_")[0], []).append(name)
    folds = {}
    for members in breeds.values():
        members.sort(key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        folds.update({name: index % FOLDS for index, name in enumerate(members)})
    return folds


def link_fold(pets, folds, fold, out):
    """OUT/fold-N/train and OUT/fold-N/test: a folder a breed, of links to the images."""
    for name, its in folds.items():
        part = "test" if its == fold else "train"
        link = out / f"fold-{fold}" / part / name.rpartition("_")[0] / f"{name}.jpg"
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(pets / "images" / f"{name}.jpg")


def run_fold(fold, options, lockstep):
    folder = options.out / f"fold-{fold}"
    job = {"name": f"pets-fold-{fold}", "data": {"train": str(folder / "train")},
           "model": {"name": "efficientnet_lite0", "weights": str(options.weights)}}
    (folder / "job.json").write_text(json.dumps(job, indent=1))
    sets = list(options.set)
    if os.environ.get("OMP_NUM_THREADS"):
        sets.append(f"training.threads={os.environ['OMP_NUM_THREADS']}")
        sets.append(f"data.threads={os.environ['OMP_NUM_THREADS']}")
    words = [word for one in sets for word in ("--set", one)]
    run = folder / "run"
    start = time.monotonic()
    subprocess.run([lockstep, "train", folder / "job.json", "--run", run, "--json", folder / "train.json", *words],
                   check=True)
    subprocess.run([lockstep, "eval", run, "--data", folder / "test", "--weights", "last", "--json",
                    folder / "eval.json"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    score = json.loads((folder / "eval.json").read_text())
    trained = json.loads((folder / "train.json").read_text())
    row = {"fold": fold, "error": 1 - score["headline"]["value"], "samples": score["samples"],
           "seconds": round(seconds, 1), "weights_sha256": trained["weights_sha256"]}
    (folder / "row.json").write_text(json.dumps(row))
    print(f"fold {fold}: error {row['error']:.4f} of {row['samples']} images, {seconds:.0f} s", flush=True)


def summarise(options):
    rows = [json.loads(file.read_text()) for file in sorted(options.out.glob("fold-*/row.json"))]
    if not rows:
        return
    errors = [row["error"] for row in rows]
    mean = sum(errors) / len(errors)
    spread = math.sqrt(sum((e - mean) ** 2 for e in errors) / max(1, len(errors) - 1) / len(errors))
    seconds = [row["seconds"] for row in rows]
    print(f"{len(rows)} of {FOLDS} folds: error {mean:.4f} +- {spread:.4f} (standard error), "
          f"{max(seconds):.0f} s at most for a fold")
    result = [{"what": f"pets, 37 breeds: the default recipe, fold {row['fold']} of {FOLDS}",
               "model": "efficientnet_lite0", "batch": 32, "precision": "fp32", "error": round(row["error"], 4),
               "samples": row["samples"], "minutes": round(row["seconds"] / 60, 1),
               "weights_sha256": row["weights_sha256"]} for row in rows]
    result.append({"what": f"pets, 37 breeds: the default recipe, {len(rows)} folds", "model": "efficientnet_lite0",
                   "batch": 32, "precision": "fp32", "mean_error": round(mean, 4), "standard_error": round(spread, 4),
                   "minutes_a_fold": round(max(seconds) / 60, 1)})
    for row in result:
        row.update(command="examples/pets/five_fold.py PETS", machine=f"{platform.machine()}, "
                   f"{os.environ.get('OMP_NUM_THREADS', os.cpu_count())} threads a fold")
    (options.out / "rows.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"rows for results/pets.json: {options.out / 'rows.json'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pets", type=pathlib.Path)
    parser.add_argument("--fold", type=int, nargs="+", choices=range(FOLDS), default=list(range(FOLDS)))
    parser.add_argument("--weights", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("five_fold"))
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    lockstep = os.environ.get("LOCKSTEP", "lockstep")
    if not options.summary:
        pets = options.pets.resolve()
        folds = fold_of_images(list_images(pets))
        options.weights = (options.weights or options.out / "efficientnet_lite0.safetensors").resolve()
        if not options.weights.exists():
            subprocess.run([lockstep, "get", "weights", "efficientnet_lite0", "--to", options.weights], check=True)
        for fold in options.fold:
            link_fold(pets, folds, fold, options.out)
            run_fold(fold, options, lockstep)
    summarise(options)


if __name__ == "__main__":
    main()
