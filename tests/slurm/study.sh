#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A study of trainings through the queue of a real Slurm, as a chain of jobs of a minute each: it ends with the trials that
# one undisturbed process gives, settings and values. Three minutes.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 500 "$HERE/slurm.sh" run "$HERE/study.sh"

PATH=${LOCKSTEP_BUILD:-$TREE/build}/bin:$PATH
cd "$(mktemp -d /var/tmp/study-XXXXXX)" || exit 1
failures=0

ok() { echo "ok   $1 (at $SECONDS s)"; }
fail() { echo "FAIL $1"; [ -z "${2:-}" ] || sed 's/^/     /' "$2"; failures=$((failures + 1)); }
# expect NAME REGEX COMMAND...: its output (both streams, exit code appended) holds the regex.
expect() {
  local name=$1 regex=$2; shift 2
  "$@" > said.txt 2>&1; echo "exit $?" >> said.txt
  if tr '\n' ' ' < said.txt | grep -qE -- "$regex"; then ok "$name"; else fail "$name: not found: $regex" said.txt; fi
}
wait_for() { # wait_for SECONDS COMMAND...
  local until=$((SECONDS + $1)); shift
  until "$@" > waited.txt 2>&1; do [ $SECONDS -lt $until ] || { cat waited.txt; return 1; }; sleep 0.5; done
}
over() { grep -qs '"event":"close"' queued/chain.jsonl; }

cat > lab.json << 'MACHINE'
{"name": "lab", "nodes": 4, "cores_per_node": 2, "sockets_per_node": 1, "cpu": "epyc-7742", "memory_per_node": "2 GB",
 "scheduler": {"kind": "slurm", "partition": "main", "walltime": "24:00:00"}}
MACHINE
printf '%s' '{"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 64, "threads": 1},' \
  '"model": {"name": "smallcnn"}, "training": {"global_batch": 16, "epochs": 40, "threads": 1}, "checkpoint": {"every_epochs": 4}}' > job.json
printf '%s' '{"name": "lr", "job": "job.json", "sampler": "random", "trials": 5,' \
  '"space": {"training.optimizer.lr": {"log": [0.001, 1]}, "training.global_batch": {"choice": [8, 16]}}}' > study.json
expect "data" 'exit 0' lockstep prep --synthesize shapes --count 300 --classes 3 --image-size 64 --to shapes
expect "undisturbed, by one process" '5 trials complete.*exit 0' lockstep tune study.json --to whole --no-plan --here
expect "a chain" 'queued job [0-9]+; each queues the next' \
  lockstep submit --on lab.json --ranks-per-node 1 --walltime 1min -- tune study.json --to queued --no-plan
if wait_for 360 over; then ok "the chain is over"; else fail "the chain is over" queued/chain.jsonl; fi
expect "the same trials, after several links" 'the same 5 trials, links: [2-9]' python3 - << 'PY'
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
