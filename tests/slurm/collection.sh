#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A collection that is predicted through the queue of a real Slurm, as a chain of jobs of two ranks: the first job is
# cancelled once it has kept records, the next one goes on, and the result has each image once, with the records that
# one undisturbed process gives. Half a minute. (tests/faults/kill_predict.py kills without warning.)
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 300 "$HERE/slurm.sh" run "$HERE/collection.sh"

export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
PATH=${LOCKSTEP_BUILD:-$TREE/build}/bin:$PATH
cd "$(mktemp -d /var/tmp/collection-XXXXXX)" || exit 1
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
  until "$@" > waited.txt 2>&1; do [ $SECONDS -lt $until ] || { cat waited.txt; return 1; }; sleep 0.2; done
}
kept() { grep -qs '"path"' found.files/parts/rank-*.part; }
over() { grep -qs '"event":"close"' found.files/chain.jsonl; }

cat > lab.json << 'MACHINE'
{"name": "lab", "nodes": 4, "cores_per_node": 2, "sockets_per_node": 1, "cpu": "epyc-7742", "memory_per_node": "2 GB",
 "scheduler": {"kind": "slurm", "partition": "main", "walltime": "24:00:00", "environment":
   ["OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo", "OMPI_MCA_btl_base_warn_component_unused=0"]}}
MACHINE
printf '%s' '{"name": "t", "data": {"train": "shapes/train", "image_size": 96, "threads": 1}, "model": {"name": "resnet18"},' \
  '"training": {"global_batch": 4, "steps": 1, "threads": 1}, "evaluation": {"every_epochs": 0}}' > job.json
expect "a run and its collection" 'trained 1 steps.*exit 0' bash -c \
  'lockstep prep --synthesize shapes --count 500 --classes 2 --image-size 96 --to shapes && lockstep train job.json --run run --here'
expect "undisturbed, by one process" 'whole.jsonl: 400 images.*exit 0' lockstep predict run shapes/train --to whole.jsonl

expect "a chain" 'queued job [0-9]+; each queues the next' \
  lockstep submit --on lab.json --ranks-per-node 2 --walltime 5min -- predict run shapes/train --to found.jsonl --set data.threads=1
if wait_for 60 kept; then ok "records are kept"; else fail "records are kept" found.files/chain.jsonl; fi
job=$(python3 -c 'import json; print([json.loads(line)["job"] for line in open("found.files/chain.jsonl") if "\"begin\"" in line][0])')
scancel --signal=KILL --full "$job"
if wait_for 120 over; then ok "the chain is over"; else fail "the chain is over" found.files/chain.jsonl; fi
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
