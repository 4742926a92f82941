#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The caption classifier learns what is a caption, far above the most frequent class.

text.py [BUILD]: prep writes 2,000 sentences about drawn shapes, two in five of them captions; a linear model of their hashed
n-grams trains and is evaluated on 400 that it has not seen, beside one that counts single words alone.
"""
import json
import pathlib
import sys
import tempfile

from shared.lesson import program

lockstep = program(*sys.argv[1:2])
JOB = {
    "name": "captions", "task": "text", "data": {"train": "set/train", "validate": "set/validate"},
    "model": {"name": "hashed_linear"}, "text": {"slots": 256},
    "training": {"global_batch": 32, "epochs": 10, "seed": 3, "optimizer": {"name": "adamw", "lr": 0.02}},
    "evaluation": {"every_epochs": 5},
}


def main():
    figures = {}
    with tempfile.TemporaryDirectory(prefix="lockstep-text-") as folder:
        lockstep("prep", "--synthesize", "sentences", "--count", "2000", "--to", "drawn", cwd=folder)
        lockstep("prep", "drawn/sentences.csv", "--to", "set", cwd=folder)
        pathlib.Path(folder, "job.json").write_text(json.dumps(JOB))
        for name, sets in (("n-grams", []), ("words", ["--set", "text.words=1", "--set", "text.longest=0"])):
            lockstep("train", "job.json", "--run", name, *sets, cwd=folder)
            lockstep("eval", name, "--json", f"{name}.json", cwd=folder)
            figures[name] = json.loads(pathlib.Path(folder, f"{name}.json").read_text())
    for name, one in figures.items():
        print(name, {key: round(one[key], 4) for key in ("accuracy", "f1", "precision", "recall", "average_precision", "ece", "loss")})
    found, constant = figures["n-grams"], figures["n-grams"]["constant"]
    # The last line is what the row keeps.
    print(f"accuracy {found['accuracy']:.4f}, F1 {found['f1']:.4f}, ECE {found['ece']:.4f}; by single words F1 {figures['words']['f1']:.4f}; "
          f"always {constant['class']}: accuracy {constant['accuracy']:.4f}; always {found['positive']}: F1 {constant['f1']:.4f}")
    if not (found["accuracy"] > constant["accuracy"] + 0.3 and found["f1"] > constant["f1"] + 0.3 and found["ece"] < 0.1):
        sys.exit("text: the network does not tell captions from other sentences")


main()
