#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A workflow through the queue of a real Slurm: a job a stage, two of them at the same time on two nodes; a stage that fails
# takes those behind it out of the queue, and the same command goes on; a training in two jobs in a row. A quarter of a minute.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 2400 "$HERE/slurm.sh" run "$HERE/workflow.sh"

. "$HERE/common.sh" workflow

printf '%s' '{"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 32, "threads": 1},' \
  '"model": {"name": "linear"}, "training": {"global_batch": 16, "epochs": 2, "threads": 1}}' > job.json
cat > w.json << 'WORKFLOW'
{ "name": "w", "stages": {
  "begin": {"command": ["sh", "-c", "until [ -e begun ]; do sleep 0.2; done; touch {output}"], "outputs": ["begin.txt"]},
  "draw": {"prep": ["--synthesize", "shapes", "--count", "60", "--classes", "3", "--image-size", "32", "--to", "{output}"],
           "inputs": ["begin.txt"], "outputs": ["shapes"]},
  "train": {"train": ["job.json", "--run", "run"], "inputs": ["shapes"], "outputs": ["run/weights.safetensors"],
            "resources": {"walltime": "2 min", "jobs": 2, "cores": 1}},
  "score": {"eval": ["run"], "inputs": ["run/weights.safetensors", "shapes"], "outputs": ["run/eval.json"], "resources": {"cores": 1}},
  "node": {"command": ["sh", "-c", "hostname > {output}; test -e allowed"], "inputs": ["run/weights.safetensors"], "outputs": ["node.txt"]},
  "last": {"command": ["sh", "-c", "cat node.txt run/eval.json > {output}"], "inputs": ["node.txt", "run/eval.json"], "outputs": ["last.txt"]} } }
WORKFLOW

expect "a job a stage, two for the training" 'begin: queued job [0-9]+ draw: queued job [0-9]+ train: queued job [0-9]+ train: queued .*score: .*node: .*last: queued job [0-9]+ .*exit 0' \
  lockstep workflow run w.json --on lab.json
expect "they stand in the queue" '(waits|runs) +job [0-9]+ is (PENDING|RUNNING|CONFIGURING)' lockstep workflow status w.json
expect "not queued twice" 'begin: has job [0-9]+ draw: has job [0-9]+ .*last: has job [0-9]+ .*exit 0' lockstep workflow run w.json --on lab.json
expect "and not run here meanwhile" "stage '[a-z]+' is in the queue.*exit 2" lockstep workflow run w.json --here
touch begun
if wait_for queue_empty; then ok "the queue is empty"; else fail "the queue is empty" waited.txt; fi
expect "what failed is named, what waited for it was not run" 'train +done .*score +done .*node +out of date +it failed: exit code 1.*last +out of date +never ran' \
  lockstep workflow status w.json
expect "nothing half-made" 'No such file.*exit [12]' ls node.txt last.txt
touch allowed
expect "what is not done is queued again, and no more" 'node: queued job [0-9]+ last: queued job [0-9]+ watch.*exit 0' lockstep workflow run w.json --on lab.json
if wait_for queue_empty; then ok "the queue is empty again"; else fail "the queue is empty again" waited.txt; fi
expect "everything is done" 'draw +done .*train +done .*score +done .*node +done .*last +done' lockstep workflow status w.json
cat said.txt
expect "on a node of the cluster, beside the score" 'n[1-4]' cat last.txt
expect "nothing is left to do" 'everything is up to date.*exit 0' lockstep workflow run w.json --on lab.json
expect "each stage ran once" 'draw 1 train 1 score 1 node 1 last 1' python3 - << 'PY'
import json, collections
done = collections.Counter(e["stage"] for e in map(json.loads, open("w.workflow/journal.jsonl")) if e["event"] == "end" and e["outcome"] == "done")
print(*(f"{stage} {done[stage]}" for stage in ("draw", "train", "score", "node", "last")))
PY
expect "cancelled" 'cancelled [0-9]+.*exit 0' bash -c 'printf x > allowed && rm last.txt && sed -i "s/cat node/sleep 1000; cat node/" w.json && lockstep workflow run w.json --on lab.json && lockstep workflow cancel w.json'
echo "workflow: $failures failed"
[ "$failures" = 0 ]
