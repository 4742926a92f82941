#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task
"""Our BLEU-1 to 4, ROUGE-L and CIDEr-D against pycocoevalcap's own modules, to 1e-6: captions.py

Random captions over small and large vocabularies, one to five references, some captions empty, some equal to a reference.
The probe is build/bin/figures_probe.
"""
import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin"


def draw(rng):
    words = [f"w{i}" for i in range(rng.choice([3, 12, 200]))]
    sentence = lambda least: " ".join(rng.choices(words, k=rng.randint(least, 12)))
    pairs = []
    for _ in range(rng.choice([1, 2, 7, 40])):
        references = [sentence(1) for _ in range(rng.randint(1, 5))]
        made = rng.choice(references) if rng.random() < 0.2 else sentence(0 if rng.random() < 0.1 else 1)
        pairs.append((made, references))
    return pairs


def theirs(pairs):
    references, made = ({i: list(p[1]) for i, p in enumerate(pairs)}, {i: [p[0]] for i, p in enumerate(pairs)})
    with contextlib.redirect_stdout(io.StringIO()):
        bleu = Bleu(4).compute_score(references, made)[0]
    return [*bleu, Rouge().compute_score(references, made)[0], Cider().compute_score(references, made)[0]]


def main():
    rng, worst = random.Random(3), [0.0] * 6
    probe = subprocess.Popen([BIN / "figures_probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(60):
        pairs = draw(rng)
        request = {"captions": [{"made": made, "references": references} for made, references in pairs]}
        probe.stdin.write(json.dumps(request) + "\n")
        probe.stdin.flush()
        ours = json.loads(probe.stdout.readline())["figures"]
        worst = [max(w, abs(a - float(b))) for w, a, b in zip(worst, ours, theirs(pairs))]
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D"]
    print("captions: largest differences " + ", ".join(f"{n} {w:.1e}" for n, w in zip(names, worst)))
    return max(worst) > 1e-6


sys.exit(main())
