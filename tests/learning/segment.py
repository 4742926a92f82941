#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An FC-DenseNet learns the pixels of drawn scenes from scratch on a CPU, well above one class everywhere.

segment.py [BUILD]: prep draws 200 scenes of three shapes in PASCAL VOC's layout; fcdensenet56 with a third of its growth
trains 280 steps at 48 x 64 pixels and is evaluated. That finds where shapes are (an IoU of the background of 0.99 was measured)
and begins to tell them apart (mean IoU 0.386); one class everywhere scores 0.223.
"""
import sys

from shared.lesson import learn_scenes, program

lockstep = program(*sys.argv[1:2])
LEAST_MIOU, LEAST_BACKGROUND = 0.33, 0.97  # on images that training never saw
JOB = {
    "name": "scenes", "task": "segment",
    "data": {"train": "set/train", "validate": "set/validate", "image_size": [48, 64], "crop_scale_min": 0.6},
    "model": {"name": "fcdensenet56", "width": 4, "dropout": 0.02},
    "training": {"global_batch": 8, "epochs": 14, "seed": 3,
                 "optimizer": {"name": "rmsprop", "lr": 0.003, "beta2": 0.9, "epsilon": 1e-6, "epsilon_in_root": True,
                               "weight_decay": 2e-4}},
    "evaluation": {"every_epochs": 4},
}


def main():
    result = learn_scenes(lockstep, JOB, "labels", "--count", "200", "--classes", "3", "--image-size", "48")
    constant, classes = result["constant"]["miou"], {c["name"]: round(c["iou"], 3) for c in result["classes"]}
    print(f"mean IoU {result['miou']:.3f} ({classes}), one class everywhere {constant:.3f}")
    if not (result["miou"] >= LEAST_MIOU and result["miou"] > 1.4 * constant and classes["background"] >= LEAST_BACKGROUND):
        sys.exit(f"segment: a mean IoU of {LEAST_MIOU} at least was expected")


main()
