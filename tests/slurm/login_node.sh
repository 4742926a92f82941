#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Manners on a login node, shown on a real Slurm: doctor says where it is and touches nothing, train sends people to a
# compute node with a line that works, and inside an allocation both are themselves again. About 30 s.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 2400 "$HERE/slurm.sh" run "$HERE/login_node.sh"

TREE=$(cd "$HERE/../.." && pwd)
PATH=${LOCKSTEP_BUILD:-$TREE/build}/bin:$PATH
cd "$(mktemp -d /var/tmp/login-node-XXXXXX)" || exit 1
failures=0

# expect NAME FILE REGEX / refuse NAME FILE REGEX: one line of the record each.
expect() {
  if grep -qE -- "$3" "$2"; then echo "ok   $1"; else
    echo "FAIL $1: not found: $3"; sed 's/^/     /' "$2"; failures=$((failures + 1))
  fi
}
refuse() {
  if ! grep -qE -- "$3" "$2"; then echo "ok   $1"; else
    echo "FAIL $1: found: $3"; sed 's/^/     /' "$2"; failures=$((failures + 1))
  fi
}
# submit NAME LINE REGEX: runs the printed line as it stands, waits for the job, looks into its output.
submit() {
  eval "$2" > submit.txt 2>&1
  local job
  job=$(grep -oE '[0-9]+' submit.txt) || { echo "FAIL $1: not accepted"; cat submit.txt; failures=$((failures + 1)); return; }
  for _ in $(seq 3000); do [ -z "$(squeue -h -j "$job" 2>&1)" ] && break; sleep 0.2; done  # silent when it is over
  expect "$1" "slurm-$job.out" "$3"
}
value() { python3 -c "import json; print(json.load(open('$1'))['facts']$2)"; }

lockstep doctor --json login.json > login.txt 2>&1
expect "doctor knows the login node" login.txt '^This is a login node: plan and submit here'
expect "doctor names the scheduler" login.txt 'login node of a slurm cluster'
expect "doctor describes the cluster" login.txt 'partition main \(default\): 4 nodes of 2 CPUs, 2.1 GB, 2 x GPU, jobs up to'
lockstep doctor --save cluster.json > /dev/null && lockstep explain machine --check cluster.json > cluster.txt 2>&1
expect "and saves it as a machine document" cluster.txt '"nodes": 4,'
value login.json '["threads"]' > threads.txt; expect "2 threads at most" threads.txt '^[12]$'
value login.json '["nice"]' > nice.txt; expect "nice 19" nice.txt '^19$'
value login.json '["storages"]' > storages.txt
refuse "no disk was measured" storages.txt "per_second': [0-9]"

srun --nodes=1 --time=10 lockstep doctor --json "$PWD/job.json" > job.txt 2>&1
expect "doctor knows an allocation" job.txt 'inside an allocation: slurm job [0-9]+ in main, 1 node, 1 task, .* left'
value job.json '["seconds_left"]' > left.txt; expect "time left is known" left.txt '^([1-5][0-9][0-9]|600)$'
value job.json '["nice"]' > nice.txt; expect "no manners needed there" nice.txt "^$(nice)$"
value job.json '["storages"]' > storages.txt; expect "disk measured there" storages.txt "read_bytes_per_second': [0-9]"

# The line that doctor prints is run as it stands.
line=$(tr '\n' ' ' < login.txt | tr -s ' ' | grep -oE "sbatch --job-name=lockstep-doctor [^']*'[^']*'")
echo "     $line"
submit "its submit line runs on a compute node" "$line" 'inside an allocation: slurm job'

if lockstep --help | grep -qE '^  train '; then
  cat > shapes.json << 'JOB'
{"name": "shapes", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 32},
 "model": {"name": "smallcnn", "classes": 2}, "training": {"global_batch": 40, "epochs": 1}, "limits": {"walltime": "00:20:00"}}
JOB
  lockstep prep --synthesize shapes --count 200 --classes 2 --image-size 48 --to shapes > prep.txt 2>&1
  expect "a short prep runs here" prep.txt 'shapes/train'
  lockstep train shapes.json --run run-job > train.txt 2>&1; echo "exit $?" >> train.txt
  expect "train refuses" train.txt 'login node .* belongs on a compute node'
  expect "with exit code 2" train.txt '^exit 2$'
  line=$(grep -oE "sbatch --job-name=lockstep-train .*--wrap '[^']*'" train.txt)
  echo "     $line"
  submit "its submit line trains on a compute node" "$line" 'epoch'
  ls run-job > run.txt 2>&1; expect "and leaves a run folder" run.txt 'journal.jsonl'
  lockstep train shapes.json --run run-here --here > here.txt 2>&1; echo "exit $?" >> here.txt
  expect "--here trains on this node after all" here.txt '^exit 0$'
else
  echo "skip train refuses: this build has no train"
fi

echo "login node: $failures failed"
[ "$failures" = 0 ]
