#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real captions against real sentences: those of Debian's tuxpaint-stamps-default against synopses of Debian packages.

stamp_sentences.py [BUILD] [STAMPS]: about 800 captions of stamps and as many synopses, case and final stop made equal, five
folds; prints accuracy, F1 and calibration over all folds for word n-grams alone and with those of characters, beside
scikit-learn's logistic regression of the same kind of features (run it with .deps/oracles/bin/python, which has that).
Hundreds of short sentences: the figures hold for such sentences, not for captions at large.
"""
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from shared.lesson import program

lockstep = program(*sys.argv[1:2])
STAMPS = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "/usr/share/tuxpaint/stamps")
FOLDS = 5
JOB = {
    "name": "stamps", "task": "text", "model": {"name": "hashed_linear"}, "text": {"slots": 256},
    "training": {"global_batch": 32, "epochs": 20, "seed": 1, "optimizer": {"name": "adamw", "lr": 0.01, "weight_decay": 0.1}},
    "evaluation": {"every_epochs": 20},
}
KINDS = {"words": ["--set", "text.longest=0"], "words and characters": []}


def plain(sentence):
    sentence = " ".join(sentence.split()).rstrip(".!? ")
    return sentence[:1].upper() + sentence[1:]


def captions():
    for file in sorted(STAMPS.rglob("*.txt")):
        yield plain(file.read_text(errors="replace").split("\n", 1)[0])


def synopses():
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    for line in sorted(set(listed.splitlines())):
        if line.startswith(("Description: ", "Description-en: ")):
            yield plain(line.split(": ", 1)[1])


def unlike(sentences):
    return list({sentence.lower(): sentence for sentence in sentences if sentence}.values())


def learn(rows, kind, folder):
    data = folder / kind.replace(" ", "_")
    pooled = []
    for fold in range(FOLDS):
        at = data / str(fold)
        at.mkdir(parents=True)
        with open(at / "list.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["sentence", "label", "split"])
            writer.writerows([*row, "validate" if i % FOLDS == fold else "train"] for i, row in enumerate(rows))
        lockstep("prep", "list.csv", "--to", "set", cwd=at)
        (at / "job.json").write_text(json.dumps({**JOB, "data": {"train": "set/train", "validate": "set/validate"}}))
        lockstep("train", "job.json", "--run", "run", *KINDS[kind], cwd=at)
        lockstep("eval", "run", "--json", "eval.json", cwd=at)
        pooled.append(json.loads((at / "eval.json").read_text()))
    count = sum(one["samples"] for one in pooled)
    return {key: sum(one[key] * one["samples"] for one in pooled) / count for key in ("accuracy", "f1", "average_precision", "ece")}


def logistic(rows, kind):
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    parts = [HashingVectorizer(ngram_range=(1, 2))]
    if kind != "words":
        parts.append(HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5)))
    right = 0
    for fold in range(FOLDS):
        train = [row for i, row in enumerate(rows) if i % FOLDS != fold]
        test = [row for i, row in enumerate(rows) if i % FOLDS == fold]
        model = make_pipeline(make_union(*parts), LogisticRegression(C=10, max_iter=1000)).fit(*zip(*train))
        right += sum(said == label for said, (_, label) in zip(model.predict([words for words, _ in test]), test))
    return right / len(rows)


def main():
    if not STAMPS.is_dir():
        print("no stamps here: apt-get install tuxpaint-stamps-default")
        return 77
    positive = unlike(captions())
    negative = [one for one in unlike(synopses()) if one.lower() not in {caption.lower() for caption in positive}]
    if len(negative) < len(positive):
        print(f"apt-cache knows {len(negative)} synopses, fewer than {len(positive)} captions: apt-get update")
        return 77
    numbers = random.Random(1)
    rows = [(one, "caption") for one in positive] + [(one, "other") for one in numbers.sample(negative, len(positive))]
    numbers.shuffle(rows)
    print(f"{len(positive)} captions, as many synopses; always one of them: accuracy 0.5, F1 0.667")
    found = {}
    with tempfile.TemporaryDirectory(prefix="lockstep-stamp-sentences-") as folder:
        for kind in KINDS:
            found[kind] = learn(rows, kind, pathlib.Path(folder))
            try:
                peer = f"; logistic regression of scikit-learn: accuracy {logistic(rows, kind):.3f}"
            except ImportError:
                peer = "; scikit-learn is not here: nothing to compare with (.deps/oracles/bin/python has it)"
            print(kind, {key: round(value, 4) for key, value in found[kind].items()}, peer)
    return 0 if found["words and characters"]["accuracy"] > 0.85 else 1


sys.exit(main())
