#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task
"""Our average precision against scikit-learn's: random scores, with and without ties, few and many positives."""
import os
import pathlib
import subprocess
import sys

import numpy as np
from sklearn.metrics import average_precision_score

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build"))


def main():
    rng = np.random.default_rng(4)
    cases = []
    for i in range(300):
        count = int(rng.integers(1, 200))
        scores = rng.standard_normal(count).astype(np.float32)
        if i % 3 == 0:
            scores = np.round(scores, 1)  # ties
        labels = rng.random(count) < rng.random()
        labels[rng.integers(count)] = True
        cases.append((scores, labels))
    lines = "".join(" ".join(f"{score:.9g} {int(label)}" for score, label in zip(*case)) + "\n" for case in cases)
    done = subprocess.run([BUILD / "bin/score_probe"], input=lines, check=True, capture_output=True, text=True)
    ours = [float(word) for word in done.stdout.split()]
    theirs = [average_precision_score(labels, scores) for scores, labels in cases]
    assert len(ours) == len(theirs)
    most = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"scores: {len(ours)} cases, largest difference {most:.2g}")
    return 1 if most > 1e-12 else 0


if __name__ == "__main__":
    sys.exit(main())
