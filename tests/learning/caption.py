#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A captioner with attention learns what drawn scenes show, from scratch on a CPU, far above the most frequent caption.

caption.py [BUILD]: prep draws 600 scenes of two shapes with sentences ("a disk, then a square"); attend_resnet18 at an
eighth of its width trains and is evaluated by its beam search against the captions.
"""
import sys

from shared.lesson import learn_scenes, program

lockstep = program(*sys.argv[1:2])
JOB = {
    "name": "scenes", "task": "caption",
    "data": {"train": "set/train", "validate": "set/validate", "image_size": [64, 80], "augment": "none"},
    "model": {"name": "attend_resnet18", "width": 16, "dropout": 0.1},
    "caption": {"length": 14, "min_count": 2, "embedding": 32, "hidden": 64, "attention": 32, "coverage": 0.1},
    "training": {"global_batch": 16, "epochs": 30, "seed": 3, "clip_norm": 5, "optimizer": {"name": "adamw", "lr": 0.004}},
    "evaluation": {"every_epochs": 10},
}


def main():
    result = learn_scenes(lockstep, JOB, "captions", "--count", "600", "--classes", "2", "--image-size", "48")
    constant = result["constant"]
    print(f"CIDEr-D {result['cider']:.3f} against {constant['cider']:.3f} of always \"{constant['caption']}\"")
    if not (result["cider"] > 1.5 * constant["cider"] and result["bleu4"] > constant["bleu4"] + 0.1):
        sys.exit("caption: the network does not say more than the most frequent caption")


main()
