#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conformal sets keep their promise on real predictions: coverage.py [PREDICTIONS.csv]

PREDICTIONS.csv is what `lockstep predict RUN FOLDER --to PREDICTIONS.csv` wrote of labelled images, by a run that is not
calibrated: a column for each class, and files in folders named by their class. Without it a small network is trained on
drawn shapes, which it knows by halves, and predicts 800 others. Each of 100 random splits takes one half for the
thresholds and the other to count; prints for each coverage how many splits lie inside the interval that has 99 % of all
calibrations, the mean coverage and the mean size of a set. Exit code 1 when fewer than 95 of 100 do. What is counted is
that the right class passes the threshold; sets hold it more often where the first class stands alone because none passes
("with_first").
"""
import csv
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin"
SPLITS = 100
JOB = {"name": "shapes", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 32},
       "model": {"name": "smallcnn"}, "training": {"global_batch": 64, "epochs": 1, "optimizer": {"lr": 0.05}}}
COVERAGES = [0.8, 0.9, 0.95]  # as the probe has them


def read_rows(path):
    with open(path, newline="") as file:
        table = csv.reader(file)
        classes = next(table)[3:-1]
        rows = [line for line in table if not line[-1]]
    numbers = {name: i for i, name in enumerate(classes)}
    return [[math.log(float(cell) + 1e-9) for cell in line[3:-1]] for line in rows], \
           [numbers[pathlib.Path(line[0]).parent.name] for line in rows]


def predict_shapes(folder):
    lockstep = lambda *words: subprocess.run([BIN / "lockstep", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "job.json").write_text(json.dumps(JOB))
    lockstep("prep", "--synthesize", "shapes", "--count", "4000", "--image-size", "32", "--to", "shapes")
    lockstep("train", "job.json", "--run", "run")
    lockstep("predict", "run", "shapes/validate", "--to", "raw.csv")
    return read_rows(folder / "raw.csv")


def interval(calibrated, tested, coverage, level=0.99):
    """Of the share that is covered: beta-binomial."""
    rank = math.ceil((calibrated + 1) * coverage - 1e-9)
    a, b = rank, calibrated + 1 - rank
    beta = lambda x, y: math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
    below, low = 0.0, None
    for k in range(tested + 1):
        below += math.exp(math.lgamma(tested + 1) - math.lgamma(k + 1) - math.lgamma(tested - k + 1)
                          + beta(k + a, tested - k + b) - beta(a, b))
        if low is None and below >= (1 - level) / 2:
            low = k
        if below >= (1 + level) / 2:
            return low / tested, k / tested
    return low / tested, 1.0


def main():
    if len(sys.argv) > 1:
        logits, labels = read_rows(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            logits, labels = predict_shapes(pathlib.Path(folder))
    questions, tested, rests = [], [], []
    for seed in range(SPLITS):
        order = list(range(len(labels)))
        random.Random(seed).shuffle(order)
        fit, rest = order[:len(order) // 2], order[len(order) // 2:]
        questions.append({"logits": [logits[i] for i in fit], "labels": [labels[i] for i in fit],
                          "others": [logits[i] for i in rest]})
        tested.append([labels[i] for i in rest])
        rests.append(rest)
    done = subprocess.run([BIN / "trust_probe"], input="".join(json.dumps(each) + "\n" for each in questions), check=True,
                          capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    shares = [math.exp(row[label]) / sum(map(math.exp, row)) for row, label in zip(logits, labels)]
    rows, worst = [], SPLITS
    for k, coverage in enumerate(COVERAGES):
        low, high = interval(len(labels) // 2, len(tested[0]), coverage)
        held = [sum(1 - shares[i] <= answer["thresholds"][k] for i in rest) / len(rest)
                for rest, answer in zip(rests, answers)]
        given = [sum(label in own for label, own in zip(truth, answer["sets"][k])) / len(truth)
                 for truth, answer in zip(tested, answers)]
        sizes = [len(own) for answer in answers for own in answer["sets"][k]]
        inside = sum(low <= share <= high for share in held)
        worst = min(worst, inside)
        rows.append({"coverage": coverage, "inside": inside, "splits": SPLITS, "low": round(low, 4), "high": round(high, 4),
                     "mean_coverage": round(sum(held) / SPLITS, 4), "with_first": round(sum(given) / SPLITS, 4),
                     "mean_size": round(sum(sizes) / len(sizes), 3)})
    for row in rows:
        print(json.dumps(row))
    column = lambda key: " ".join(str(row[key]) for row in rows)
    print(f"coverage: {column('inside')} of {SPLITS} splits inside at {column('coverage')}, sets of {column('mean_size')} classes")
    return 1 if worst < 0.95 * SPLITS else 0


if __name__ == "__main__":
    sys.exit(main())
