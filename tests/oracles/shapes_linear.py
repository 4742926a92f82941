#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: sources
"""How far a linear model gets on the drawn shapes: it must stay below 45 %, so that what a network reaches was learnt.

shapes_linear.py [FOLDER] takes a set that exists; without it one of 4000 images is drawn.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build"))
SIDE = 24  # a linear model does not gain from more pixels, it only overfits sooner
MOST = 0.45


def read(folder):
    images, labels = [], []
    for label, kind in enumerate(sorted(path for path in folder.iterdir() if path.is_dir())):
        for path in sorted(kind.glob("*.jpg")):
            image = Image.open(path).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            images.append(np.asarray(image, dtype=np.float32).ravel() / 255)
            labels.append(label)
    return np.stack(images), np.array(labels)


def accuracy(folder):
    train, train_labels = read(folder / "train")
    validate, validate_labels = read(folder / "validate")
    scaler = StandardScaler().fit(train)
    best = 0.0
    for strength in (1e-4, 1e-3):  # weak and strong regularisation: the better one counts
        model = LogisticRegression(C=strength, max_iter=300).fit(scaler.transform(train), train_labels)
        best = max(best, model.score(scaler.transform(validate), validate_labels))
    return best


def main():
    if len(sys.argv) > 1:
        reached = accuracy(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            subprocess.run([BUILD / "bin/lockstep", "prep", "--synthesize", "shapes", "--to", f"{name}/shapes",
                            "--json", f"{name}/result.json"], check=True, capture_output=True)
            reached = accuracy(pathlib.Path(name) / "shapes")
    print(f"linear model on the drawn shapes: {reached:.3f} of the validation images right, at most {MOST} allowed")
    return 0 if reached <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
