# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests in this folder, within the view of slurm.sh: the program on the PATH, a folder of one's own, a
# machine document lab.json, and the words to check with.
#   . common.sh NAME [VARIABLE=VALUE...]   the variables, and the library of hold.c, reach each job that goes to lab.json

# Within the view there is loopback alone, which Open MPI passes over unless told.
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
PATH=${LOCKSTEP_BUILD:-$TREE/build}/bin:$PATH
cd "$(mktemp -d "/var/tmp/$1-XXXXXX")" || exit 1
failures=0

ok() { echo "ok   $1 (at $SECONDS s)"; }
fail() { echo "FAIL $1"; [ -z "${2:-}" ] || sed 's/^/     /' "$2"; failures=$((failures + 1)); }
check() { local name=$1; shift; if "$@" > check.txt 2>&1; then ok "$name"; else fail "$name: $*" check.txt; fi; }
# expect NAME REGEX COMMAND...: its output (both streams, exit code appended) holds the regex.
expect() {
  local name=$1 regex=$2; shift 2
  "$@" > said.txt 2>&1; echo "exit $?" >> said.txt
  if tr '\n' ' ' < said.txt | grep -qE -- "$regex"; then ok "$name"; else fail "$name: not found: $regex" said.txt; fi
}
# Until the command succeeds. The limit ends what hangs: it is far beyond what a busy machine needs.
wait_for() { # wait_for COMMAND...
  local until=$((SECONDS + ${most_seconds:-600}))
  until "$@" > waited.txt 2>&1; do [ $SECONDS -lt $until ] || { cat waited.txt; return 1; }; sleep 0.5; done
}
# field RUN EXPRESSION: of the chain's events, as Python sees them.
field() {
  python3 - "$1/chain.jsonl" "$2" << 'PY'
import json, os, sys
events = [json.loads(line) for line in open(sys.argv[1])] if os.path.exists(sys.argv[1]) else []
def of(name): return [e for e in events if e["event"] == name]
print(eval(sys.argv[2]))
PY
}
links() { field "$1" 'len({e["job"] for e in of("begin")})'; }
begun() { [ "$(links "$1")" -ge "$2" ]; }
over() { [ "$(field "$1" 'of("close")[-1]["why"] if of("close") else ""')" = "${2:-done}" ]; }
# A controller that does not answer says neither.
gone() { local said; said=$(squeue -h -j "$1" 2>&1); [ -z "$said" ] || [[ $said == *'Invalid job id'* ]]; }
queue_empty() { local said; said=$(squeue -h 2>&1); echo "$said"; [ -z "$said" ]; }

# Kills the running link of a chain without warning, and waits until nothing of it runs.
kill_link() { # kill_link RUN
  local job
  job=$(field "$1" 'of("begin")[-1]["job"]')
  scancel --signal=KILL --full "$job"
  if wait_for gone "$job"; then echo "     $1: job $job killed"; else fail "$1: job $job ends" waited.txt; fi
}

cc -shared -fPIC -O1 -Wall -Werror -o hold.so "$HERE/hold.c" -ldl || exit 1
python3 - "LD_PRELOAD=$PWD/hold.so" "${@:2}" > lab.json << 'PY'
import json, sys
environment = ["OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo", "OMPI_MCA_btl_base_warn_component_unused=0"]
print(json.dumps({"name": "lab", "nodes": 4, "cores_per_node": 2, "sockets_per_node": 1, "cpu": "epyc-7742", "memory_per_node": "2 GB",
                  "scheduler": {"kind": "slurm", "partition": "main", "walltime": "24:00:00", "environment": environment + sys.argv[1:]}}))
PY
