#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the page docs/documents/kitti.md; further arguments go to the command (--report FILE.md, --json FILE: full paths).
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"
lockstep plan --advise table table.json "$@"
exec ../plans.sh "$@" << 'TEXT'
## The larger networks that it names

More layers: ResNet-152 and the Tiramisu. More computation: DenseNet. ResNet-50 and GoogLeNet are what its authors scaled. The
recipe of ImageNet's 90 epochs in fp32 on one P100 and on 16; where a batch does not fit, with the micro-batch that does:

    lockstep plan examples/resnet50.json --set training.precision=fp32 --on p100-pcie --gpus 1,16 --levers micro_batch

    lockstep plan examples/resnet50.json --set model.name=resnet152 --set training.precision=fp32 --on p100-pcie --gpus 1,16 --levers micro_batch

    lockstep plan examples/resnet50.json --set model.name=googlenet --set training.precision=fp32 --on p100-pcie --gpus 1,16 --levers micro_batch

    lockstep plan examples/resnet50.json --set model.name=densenet201 --set training.precision=fp32 --on p100-pcie --gpus 1,16 --levers micro_batch

The Tiramisu labels every pixel ([segmentation](../segmentation.md)). Its paper's crops of CamVid, 3 a step, and whole images of
352 x 480, one a step:

    lockstep plan examples/documents/kitti/tiramisu.json --on p100-pcie --levers micro_batch

    lockstep plan examples/documents/kitti/tiramisu.json --set 'data.image_size=[352,480]' --set training.global_batch=1 --on p100-pcie --levers micro_batch

Learning rate, momentum, number of layers or blocks: `lockstep tune study.json` ([tuning](../tune.md)). Interpretability and
reliability of predictions: of a classifier (ResNet, GoogLeNet, DenseNet) `lockstep eval RUN --calibrate --features --explain`
([trust](../trust.md)). FastBox, the Tiramisu and the radar refuse these options; they have [figures of their
own](../trust.md#other-tasks): a score for each box, the mean probability of each region, errors by lead time.

## Training them

KITTI, from one JSON ([detection](../detection.md)); on a GPU with `--device cuda`:

    lockstep prep KITTI/training --to kitti
    lockstep get weights vgg16
    lockstep train examples/kitti/job.json --set model.weights=models/vgg16.safetensors
    lockstep eval runs/kitti
    lockstep predict runs/kitti drive/ --json found.json

On 8 GPUs, as in the table's second row, with `--ranks 8 --set training.global_batch=40 --set training.steps=17500 --set
evaluation.every_steps=250` in addition.

The radar, from the download to the forecast ([workflow](../workflow.md)), as jobs of a queue; and a made-up one, here
([nowcasting](../nowcasting.md)):

    lockstep workflow plan examples/radar/workflow.json
    lockstep workflow run examples/radar/workflow.json --on site.json
    lockstep workflow status examples/radar/workflow.json
    lockstep workflow run examples/nowcast_workflow.json
TEXT
