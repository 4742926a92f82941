#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the page docs/documents/minotauro.md; further arguments go to the command (--report FILE.md, --json FILE: full paths).
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"
lockstep plan --advise table table.json "$@"
exec ../plans.sh "$@" << 'TEXT'
## The other lines of work

Caption generation with attention ([captions](../captions.md)): "does not require many resources". The paper's decoder on a
ResNet-50, 20 epochs of MS COCO 2014, on one K80 and on the two of a node, with a micro-batch that fits:

    lockstep plan examples/documents/minotauro/captions.json --on k80 --gpus 1,2 --levers micro_batch

The caption classifier "depends only on the size of the dataset": as many captions as COCO 2014 has and as many other sentences,
on a processor of these nodes and on a K80:

    lockstep plan examples/documents/minotauro/sentences.json --on xeon-e5-2630-v3,k80 --no-search

Iconographic classes are classes of one's own detector, as in the table above. Time context and language model change its
answers and train nothing: `instances.context` ([detection](../detection.md)).

Enrichment is offline: `lockstep predict runs/pets collection --to found.jsonl --pictures --ranks 8` gives one record an image, and
goes on after whatever ended it; `lockstep submit --on site.json --nodes 2 -- predict runs/pets collection --to found.jsonl` does so
as jobs ([collections](../collections.md)). For the ingestion `--annotations` writes Web Annotations.

## Training them

Mask R-CNN on five nodes, in jobs of 48 hours of which each goes on where the one before stopped ([submit](../submit.md)); these nodes
take `--device cpu`. job.json is examples/documents/minotauro/job.json with data and weights of its own ([detection](../detection.md)):
`"data": {"train": "data/coco/train", "validate": "data/coco/validate", "image_size": [800, 1216]}` and `"model": {"name":
"maskrcnn_resnet50_fpn", "weights": "models/maskrcnn_resnet50_fpn.safetensors"}`:

    lockstep prep coco/ --to data/coco
    lockstep get weights maskrcnn_resnet50_fpn
    lockstep submit job.json --on site.json --nodes 5 --walltime 48:00:00
    lockstep submit --status runs/minotauro

Captions, and the classifier of sentences ([captions](../captions.md)):

    lockstep prep annotations/captions_train2014.json --images train2014 --to coco
    lockstep train examples/documents/minotauro/captions.json --set data.validate=coco/validate --set data.samples=0
    lockstep predict runs/captions collection --to told.jsonl --pictures
    lockstep prep sentences.csv --to sentences
    lockstep train examples/documents/minotauro/sentences.json --set data.validate=sentences/validate --set data.samples=0
    lockstep predict runs/sentences list.txt --to said.csv
TEXT
