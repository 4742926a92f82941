#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A collection that is predicted through the queue of a real Slurm, as a chain of jobs of two ranks: the first job is
# cancelled once it has kept records, the next one goes on, and the result has each image once, with the records that
# one undisturbed process gives. Half a minute. (tests/faults/kill_predict.py kills without warning.)
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 2400 "$HERE/slurm.sh" run "$HERE/collection.sh"

. "$HERE/common.sh" collection

kept() { grep -qs '"path"' found.files/parts/rank-*.part; }

printf '%s' '{"name": "t", "data": {"train": "shapes/train", "image_size": 96, "threads": 1}, "model": {"name": "resnet18"},' \
  '"training": {"global_batch": 4, "steps": 1, "threads": 1}, "evaluation": {"every_epochs": 0}}' > job.json
expect "a run and its collection" 'trained 1 steps.*exit 0' bash -c \
  'lockstep prep --synthesize shapes --count 500 --classes 2 --image-size 96 --to shapes && lockstep train job.json --run run --here'
expect "undisturbed, by one process" 'whole.jsonl: 400 images.*exit 0' lockstep predict run shapes/train --to whole.jsonl

echo 1 > found.files.gate  # the second batch of records is not kept before the first job is killed
expect "a chain" 'queued job [0-9]+; each queues the next' \
  lockstep submit --on lab.json --ranks-per-node 2 --walltime 30min -- predict run shapes/train --to found.jsonl --set data.threads=1
if wait_for kept; then ok "records are kept"; else fail "records are kept" found.files/chain.jsonl; fi
kill_link found.files
rm found.files.gate
if wait_for over found.files; then ok "the chain is over"; else fail "the chain is over" found.files/chain.jsonl; fi
expect "it is done, after two links" '400 of 400 saved.*exit 0' lockstep submit --status found.files
cat said.txt
expect "each image once, the same records" 'the same 400 records, links: 2' python3 - << 'PY'
import json
def rows(name):
    return [{k: v for k, v in json.loads(line).items() if k != "time"} for line in open(name)]
chain = [json.loads(line) for line in open("found.files/chain.jsonl")]
assert chain[-1]["event"] == "close" and chain[-1]["why"] == "done", chain[-1]
found, whole = rows("found.jsonl"), rows("whole.jsonl")
assert found == whole and len({row["path"] for row in found}) == len(found), "other records"
print("the same", len(found), "records, links:", len({event["job"] for event in chain if event["event"] == "begin"}))
PY
echo "collection: $failures failed"
[ "$failures" = 0 ]
