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
TEXT
