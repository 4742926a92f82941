#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A study of trainings through the queue of a real Slurm, as a chain of jobs of a minute each: it ends with the trials that
# one undisturbed process gives, settings and values. Two minutes.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 3000 "$HERE/slurm.sh" run "$HERE/study.sh"

. "$HERE/common.sh" study HOLD_PACE=1.5  # 10 saves in each of 5 trials: more than a job of a minute holds

printf '%s' '{"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 64, "threads": 1},' \
  '"model": {"name": "smallcnn"}, "training": {"global_batch": 16, "epochs": 40, "threads": 1}, "checkpoint": {"every_epochs": 4}}' > job.json
printf '%s' '{"name": "lr", "job": "job.json", "sampler": "random", "trials": 5,' \
  '"space": {"training.optimizer.lr": {"log": [0.001, 1]}, "training.global_batch": {"choice": [8, 16]}}}' > study.json
expect "data" 'exit 0' lockstep prep --synthesize shapes --count 300 --classes 3 --image-size 64 --to shapes
expect "undisturbed, by one process" '5 trials complete.*exit 0' lockstep tune study.json --to whole --no-plan --here
expect "a chain" 'queued job [0-9]+; each queues the next' \
  lockstep submit --on lab.json --ranks-per-node 1 --walltime 1min -- tune study.json --to queued --no-plan
most_seconds=2400
if wait_for over queued; then ok "the chain is over"; else fail "the chain is over" queued/chain.jsonl; fi
expect "the same trials, after several links" 'the same 5 trials, links: ([2-9]|[1-9][0-9])' python3 - << 'PY'
import json
def trials(name):
    created, values = {}, {}
    for line in open(f"{name}/study.log"):
        record = json.loads(line)
        if record["op_code"] == 4:
            created[len(created)] = record["params"]
        if record["op_code"] == 6 and record["state"] == 1:
            assert record["trial_id"] not in values, "ended twice"
            values[record["trial_id"]] = record["values"]
    assert len(created) == len(values), (created, values)
    return created, values
chain = [json.loads(line) for line in open("queued/chain.jsonl")]
assert chain[-1]["event"] == "close" and chain[-1]["why"] == "done", chain[-1]
assert trials("whole") == trials("queued"), (trials("whole"), trials("queued"))
print("the same", len(trials("queued")[0]), "trials, links:", len({event["job"] for event in chain if event["event"] == "begin"}))
PY
cat said.txt
echo "study: $failures failed"
[ "$failures" = 0 ]
