#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captions of real images: the stamps of Debian's package tuxpaint-stamps-default, each with an English sentence.

stamps.py [BUILD] [EPOCHS] [KEEP]: lists the PNG stamps (about 785 pairs, 4 words each, nearly every caption once), prepares
them, trains attend_resnet18 from scratch and prints the honest scores beside those of the most frequent caption. Hundreds of
images teach no language: what must hold is that training captions are learnt (their loss falls) and that all figures are
there. KEEP: a folder for the run, its report and the pictures.
"""
import json
import pathlib
import sys
import tempfile

from shared.lesson import program

lockstep = program(*sys.argv[1:2])
EPOCHS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
STAMPS = pathlib.Path("/usr/share/tuxpaint/stamps")
JOB = {
    "name": "stamps", "task": "caption",
    "data": {"train": "set/train", "validate": "set/validate", "image_size": 96, "crop_scale_min": 0.7, "flip": False},
    "model": {"name": "attend_resnet18", "width": 32, "dropout": 0.3},
    "caption": {"length": 12, "min_count": 3, "embedding": 128, "hidden": 256, "attention": 128, "coverage": 0.1},
    "training": {"global_batch": 32, "epochs": EPOCHS, "seed": 1, "clip_norm": 5, "optimizer": {"name": "adamw", "lr": 0.001}},
    "evaluation": {"every_epochs": 10},
}


def pairs():
    for text in sorted(STAMPS.rglob("*.txt")):
        image, caption = text.with_suffix(".png"), text.read_text(errors="replace").split("\n", 1)[0].strip()
        if image.is_file() and caption:
            yield {"image": str(image.relative_to(STAMPS)), "caption": caption}


def main():
    if not STAMPS.is_dir():
        print("no stamps here: apt-get install tuxpaint-stamps-default")
        return 77
    with tempfile.TemporaryDirectory(prefix="lockstep-stamps-") as temporary:
        folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        listed = list(pairs())
        (folder / "captions.json").write_text(json.dumps(listed))
        print(f"{len(listed)} pairs, {len({one['caption'] for one in listed})} distinct captions")
        lockstep("prep", "captions.json", "--images", str(STAMPS), "--max-side", "192", "--to", "set", cwd=folder)
        (folder / "job.json").write_text(json.dumps(JOB))
        print(lockstep("train", "job.json", "--run", "run", cwd=folder))
        print(lockstep("eval", "run", "--json", "eval.json", cwd=folder))
        result = json.loads((folder / "eval.json").read_text())
        epochs = [json.loads(line) for line in (folder / "run/journal.jsonl").read_text().splitlines()]
    losses = [one["loss"] for one in epochs if one["event"] == "epoch"]
    print(f"loss of training from {losses[0]:.3f} to {losses[-1]:.3f}, of validation {result['loss']:.3f}")
    constant = result["constant"]
    for who, figures in (("network", result), ("constant", constant)):
        print(who, {key: round(figures[key], 4) for key in ("bleu1", "bleu2", "bleu3", "bleu4", "rouge_l", "cider")})
    # The last line is what the row keeps.
    print(f"CIDEr-D {result['cider']:.3f} and BLEU-4 {result['bleu4']:.3f}, always \"{constant['caption']}\": {constant['cider']:.3f} and {constant['bleu4']:.3f}")
    return 0 if losses[-1] < losses[0] / 2 else 1


sys.exit(main())
