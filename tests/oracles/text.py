#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task
"""Our precision, recall, F1, accuracy, average precision and log loss of sentences against scikit-learn's: text.py

The expected calibration error, which it has not, against numpy's sum over 15 bins. Random logits of two to four classes, rounded
so that some are equal; rare and frequent positives. The probe, build/bin/figures_probe, merges two scores.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy
from sklearn.metrics import accuracy_score, average_precision_score, log_loss, precision_recall_fscore_support

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin"
BINS = 15


def draw(rng):
    count, classes = rng.choice([5, 40, 300]), rng.choice([2, 3, 4])
    shares = rng.dirichlet([1] * classes)
    targets = rng.choice(classes, size=count, p=shares)
    logits = rng.normal(size=(count, classes)) + rng.uniform(0, 3) * numpy.eye(classes)[targets]
    return targets, numpy.round(logits, rng.choice([1, 6])).astype(numpy.float32)


def theirs(targets, logits, positive):
    shares = numpy.exp(logits.astype(float) - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    said, sure = logits.argmax(1), shares.max(1)
    precision, recall, f1, _ = precision_recall_fscore_support(targets == positive, said == positive, average="binary", zero_division=0)
    others = numpy.delete(logits.astype(float), positive, 1)
    odds = (logits[:, positive] - (others.max(1) + numpy.log(numpy.exp(others - others.max(1, keepdims=True)).sum(1)))).astype(numpy.float32)
    bins = numpy.clip(numpy.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
    ece = sum(abs((said == targets)[bins == b].sum() - sure[bins == b].sum()) for b in range(BINS)) / len(targets)
    return {"precision": precision, "recall": recall, "f1": f1, "accuracy": accuracy_score(targets, said), "ece": ece,
            "average_precision": average_precision_score(targets == positive, odds), "loss": log_loss(targets, shares, labels=range(logits.shape[1]))}


def main():
    rng, worst = numpy.random.default_rng(3), {}
    probe = subprocess.Popen([BIN / "figures_probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(60):
        targets, logits = draw(rng)
        positive = int(targets[0])  # there is one at least
        request = {"positive": positive, "targets": targets.tolist(), "logits": logits.tolist()}
        probe.stdin.write(json.dumps(request) + "\n")
        probe.stdin.flush()
        ours = json.loads(probe.stdout.readline())
        for name, value in theirs(targets, logits, positive).items():
            worst[name] = max(worst.get(name, 0), abs(ours[name] - value))
    print("text: largest differences " + ", ".join(f"{name} {value:.1e}" for name, value in worst.items()))
    return max(worst.values()) > 1e-6


sys.exit(main())
