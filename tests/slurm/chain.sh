#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Training through the walltime on a real Slurm: one job, three times. Undisturbed; as a chain of one-minute jobs that
# queue their successors; as a chain queued from the login node. Both chains lose a node's power, the controller is
# killed and restarted, and all three end with the same SHA-256. Meanwhile: srun --mpi=pmix, PBS scripts through
# Slurm's qsub, --earliest, --status, --cancel, a node on which every rank dies, and what is refused. About 4 minutes.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
#   chain.sh             all of it
#   chain.sh record N    a chain of N one-minute jobs alone, its figures to $LOCKSTEP_CHAIN_OUT (results/chain.json)
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
LIMIT=2400
[ "${1:-}" = record ] && LIMIT=$((900 + 180 * $2))
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 $LIMIT "$HERE/slurm.sh" run "$HERE/chain.sh" "$@"

# A save takes a second: how long a run lasts is the number of its saves, however fast or busy the processor is.
pace=HOLD_PACE=1
[ "${1:-}" = record ] && pace=HOLD_PACE=0
. "$HERE/common.sh" chain $pace

saved_in_link() { # saved_in_link RUN N: link N has begun, and something was saved since
  python3 - "$1" "$2" << 'PY'
import json, sys
begun = [json.loads(l) for l in open(sys.argv[1] + "/chain.jsonl")]
begun = [e for e in begun if e["event"] == "begin" and e["link"] == int(sys.argv[2])]
saves = [json.loads(l)["t"] for l in open(sys.argv[1] + "/journal.jsonl") if '"event":"save"' in l]
sys.exit(0 if begun and any(t > begun[-1]["t"] + 2 for t in saves) else 1)
PY
}

make_job() { # make_job NAME STEPS [STEPS BETWEEN SAVES]
  printf '{"name": "%s", "data": {"train": "synthetic", "samples": %s, "image_size": 32, "threads": 1}, %s %s' \
    "$1" $((40 * ${3:-50})) '"model": {"name": "smallcnn", "classes": 4, "width": 8}, "evaluation": {"every_epochs": 0},' \
    "\"checkpoint\": {\"every_epochs\": 1}, \"training\": {\"global_batch\": 40, \"steps\": $2, \"threads\": 1}}" > "$1.json"
}
# steps_for SECONDS RUNS: how many steps a run takes in that time while so many runs share this machine, by short ones.
steps_for() {
  make_job pace 300
  for i in $(seq "$2"); do
    sbatch --wait --nodes=1 --exclusive --time=5 --output=pace$i.txt --wrap "lockstep train pace.json --ranks 2 --run pace$i" &
  done > /dev/null
  wait
  python3 - "$1" "$2" << 'PY'
import json, sys
rates = []
for i in range(int(sys.argv[2])):
    steps = [json.loads(line) for line in open(f"pace{i + 1}/journal.jsonl") if '"event":"step"' in line]
    rates.append(sum(e.get("steps", 1) for e in steps) / sum(e["seconds"] for e in steps))
print(int(min(rates) * float(sys.argv[1])))
PY
}

# --- one long chain, recorded -----------------------------------------------------------------------------------------

record() {
  local wanted=$1 steps hours
  steps=$(steps_for $((56 * wanted)) 2)  # a link trains for some 50 of its 60 s, faster once the undisturbed run is done
  for run in long straight; do make_job $run "$steps"; done
  hours=$(python3 -c "print(65 * $wanted / 3600)")
  # Without a chain: Slurm counts every waiting job, a successor of 4 h too, when it tells when the next could start.
  sbatch --wait --nodes=1 --exclusive --time=240 --output=straight.txt \
    --wrap "lockstep train straight.json --ranks 2 --run straight" > /dev/null & straight=$!
  wait_for test -e straight/journal.jsonl
  lockstep submit long.json --on lab.json --ranks-per-node 2 --walltime 1min --hours "1=$hours" --max-links $((3 * wanted)) \
    --run long
  most_seconds=$((180 * wanted)) wait_for over long || fail "the long chain is done" long/chain.jsonl
  wait $straight || fail "the undisturbed run is done" straight.txt
  check "same bits as undisturbed" cmp long/weights.safetensors straight/weights.safetensors
  lockstep submit --status long
  python3 - "$wanted" "${LOCKSTEP_CHAIN_OUT:-$TREE/results/chain.json}" "$(git -C "$TREE" rev-parse --short=10 HEAD)" << 'PY'
import json, statistics, sys
chain = [json.loads(line) for line in open("long/chain.jsonl")]
journal = [json.loads(line) for line in open("long/journal.jsonl")]
begins = [e for e in chain if e["event"] == "begin"]
ends = [e for e in chain if e["event"] == "finish"]
trained = sum(e["seconds"] for e in journal if e["event"] == "step")
wall = ends[-1]["t"] - begins[0]["t"]
gaps = [b["t"] - e["t"] for b, e in zip(begins[1:], ends)]
starts = []
for begin in begins:
    first = next((e for e in journal if e["event"] == "step" and e["t"] > begin["t"]), None)
    if first: starts.append(first["t"] - first["seconds"] - begin["t"])
lost = (wall - trained) / len(begins)
redone = sum(e.get("steps", 1) for e in journal if e["event"] == "step") - ends[-1]["step"]
row = {"what": "chain of one-minute Slurm jobs", "model": "smallcnn", "batch": 40, "precision": "fp32", "ranks": 2,
       "links": len(begins), "steps": ends[-1]["step"], "wall_seconds": round(wall, 1),
       "training_seconds": round(trained, 1), "seconds_lost_per_link": round(lost, 2),
       "queue_seconds_median": round(statistics.median(gaps), 2), "start_seconds_median": round(statistics.median(starts), 2),
       "steps_lost": redone, "promised_end_late_seconds": round(chain[-1]["late_seconds"], 1),
       "same_sha256_as_undisturbed": open("long/weights.safetensors", "rb").read() ==
                                     open("straight/weights.safetensors", "rb").read(), "peer": "the same run, undisturbed",
       "ratio": round(trained / wall, 4), "command": f"tests/slurm/chain.sh record {sys.argv[1]}", "commit": sys.argv[3],
       "machine": "2 shared cores, Slurm 22.05.8, 4 virtual nodes"}
json.dump([row], open(sys.argv[2], "w"), indent=2)
print(json.dumps(row, indent=2))
PY
}

if [ "${1:-}" = record ]; then
  record "$2"
  echo "chain: $failures failed"
  [ "$failures" = 0 ]; exit
fi

# --- everything -------------------------------------------------------------------------------------------------------

for run in straight queued login; do make_job $run 1300 10; done  # 130 saves of a second: more than two jobs of a minute
submit="lockstep submit --on lab.json --ranks-per-node 2 --no-plan"
nodes_in() { [ "$(sinfo -h -N -o %T | grep -cxE "$1")" = "$2" ]; }  # a state with a * is of a node that does not answer
runs() { [ "$(squeue -h -o %T -j "$(field "$1" 'of("queued")[0]["job"]')")" = RUNNING ]; }
echo 1200 > straight.gate  # it does not end before --earliest has found its node taken
expect "the undisturbed run is submitted" 'queued job [0-9]+' \
  $submit straight.json --run straight --walltime 15min --site 'scheduler.extra=["--nodelist=n4"]'
check "the undisturbed run has its node" wait_for runs straight
check "the other three are free" wait_for nodes_in idle 3

# --earliest: four nodes are free when the 15 minutes of the undisturbed run are over, one is free now. Asked while nothing
# else is in the queue: what Slurm expects then does not depend on how far others have come.
make_job soon 20
expect "--earliest takes the shape that ends first" '4 +8 .* 1 +2 .*<- ends first.*queued job' \
  $submit soon.json --run soon --nodes 4,1 --earliest --hours 4=0.01,1=0.02 --walltime 2min
rm straight.gate

# What is refused, each with its fix.
expect "unknown partition" "no partition 'mian'.*did you mean 'main'.*exit 2" \
  $submit straight.json --run x --walltime 5min --site scheduler.partition=mian
expect "too many nodes" 'has 4 nodes, not 7.*exit 2' $submit straight.json --run x --walltime 5min --nodes 7 --site nodes=9
expect "longer than the partition allows" 'lets a job run for 24:00:00, not for 48:00:00.*exit 2' \
  $submit straight.json --run x --walltime 48h --site scheduler.walltime=none
expect "unknown constraint" 'Invalid feature specification.*scheduler.constraint.*exit 2' \
  $submit straight.json --run x --walltime 5min --site scheduler.constraint=v900
expect "unknown reservation" 'Requested reservation is invalid.*scheduler.reservation.*exit 2' \
  $submit straight.json --run x --walltime 5min --site scheduler.reservation=course
check "the undisturbed run begins" wait_for test -e straight/job.json
expect "another job's run folder" 'is the run of another job: training.seed was 1, now 7.*exit 2' \
  $submit straight.json --run straight --walltime 5min --set training.seed=7

expect "a chain queued at once" 'queued jobs [0-9]+(, [0-9]+){19}; those left over' \
  $submit login.json --run login --walltime 1min --links 20 --site submit_from=login --site 'scheduler.extra=["--exclude=n4"]'
# Nothing slow stands between this one and the restart of the controller, which falls into the minute of its first link: a
# link that begins while nobody answers would have no successor.
expect "a chain that queues itself" 'queued job [0-9]+; each queues the next, 30 at most' \
  $submit queued.json --run queued --walltime 1min --max-links 30 --site 'scheduler.extra=["--exclude=n4"]'
check "its first link begins" wait_for begun queued 1
check "and that of the other chain" wait_for begun login 1
expect "a chain that lives" 'its chain lives, job [0-9]+ is (RUNNING|PENDING).*--cancel.*exit 2' \
  $submit queued.json --run queued --walltime 1min

# The scheduler is asked once a minute, whoever asks how often.
aged() { lockstep submit --status queued > status.txt 2>&1; grep -q 'asked [1-9][0-9]* s ago' status.txt; }
check "an answer is used again" wait_for aged
expect "status tells its age" 'link [0-9]+ of at most 30.*(RUNNING|PENDING).*asked [1-9][0-9]* s ago' cat status.txt

# The controller dies and comes back: jobs do not notice. Early in a link's minute, however slow the machine was so far.
young() { [ "$(field "$1" 'int(__import__("time").time() - of("begin")[-1]["t"] < 20 and len(of("queued")) > len(of("begin")))')" = 1 ]; }
check "a link has just begun" wait_for young queued
check "controller restarted" "$HERE/slurm.sh" restart
check "and knows its nodes again" wait_for nodes_in 'idle|mixed|allocated|completing|planned' 4

# A rank per task by srun, found through PMIx.
make_job pmix 20
expect "srun --mpi=pmix is submitted" 'queued job' \
  $submit pmix.json --run pmix --walltime 5min --site scheduler.launcher=srun --site 'scheduler.extra=["--exclude=n4"]'

# A PBS script, through Slurm's own qsub, qstat and qdel.
make_job pbs 20
expect "a PBS script is submitted" 'queued job' \
  $submit pbs.json --run pbs --walltime 5min --site scheduler.kind=pbs

# Power off the node of each chain's second link, once that link has saved.
pull_plug() { # pull_plug RUN
  local run=$1 host
  wait_for saved_in_link "$run" 2 || { fail "$run: a second link" "$run/chain.jsonl"; return; }
  host=$(field "$run" 'of("begin")[-1]["host"]')
  "$HERE/slurm.sh" crash "$host"; local at=$SECONDS
  echo "     $run: $host lost its power"
  wait_for begun "$run" 3 && ok "$run: node power-off recovered by itself after $((SECONDS - at)) s" \
    || fail "$run: nobody went on after the power-off" "$run/chain.jsonl"
  "$HERE/slurm.sh" start "$host"
}
for run in queued login; do pull_plug $run > plug-$run.txt 2>&1 & done
wait; cat plug-*.txt
failures=$((failures + $(cat plug-*.txt | grep -c ^FAIL)))

for run in straight queued login pmix soon pbs; do
  wait_for over $run && ok "$run is done after $(links $run) links" || fail "$run is done" $run/chain.jsonl
done
check "chained over at least 3 jobs" test "$(links queued)" -ge 3
check "so is the other" test "$(links login)" -ge 3
for run in queued login; do
  check "$run has the bits of the undisturbed run" cmp $run/weights.safetensors straight/weights.safetensors
done
check "nothing is left in the queue" wait_for queue_empty
expect "srun found its ranks" '"ranks":2' cat pmix/journal.jsonl
expect "PBS's variables were there" 'link 1 of at most .* after step 0' bash -c 'cat pbs/link-*.out'
expect "promised and real end are told" 'promised end .* real end .* (later|earlier)' lockstep submit --status soon

# A node on which every rank dies: its link gives up, the next one is kept away from it.
make_job bad 400 10
echo 50 > bad.gate  # saves of five seconds, then no further: neither before the kills nor, by ranks that live, between them
expect "a chain that meets a bad node" 'queued job' $submit bad.json --run bad --walltime 5min
check "and trains" wait_for saved_in_link bad 1
bad=$(field bad 'of("begin")[0]["host"]')
kill_ranks_of() { # kill_ranks_of HOST RUN: those of that node alone; the supervisor, which names the run too, is no rank
  local pid
  for pid in $(pgrep -f "lockstep train .*$2"); do
    tr '\0' '\n' < "/proc/$pid/environ" 2> /dev/null | grep -q '^OMPI_COMM_WORLD_RANK=' \
      && [ "$(nsenter -t "$pid" -u hostname 2> /dev/null)" = "$1" ] && kill -9 "$pid"
  done
}
moved() { kill_ranks_of "$bad" bad; begun bad 2; }
check "goes on with another link" wait_for moved
rm bad.gate
expect "which was kept away from it" "\"event\":\"exclude\".*\"$bad\"" cat bad/chain.jsonl
expect "by the scheduler" "job [0-9]+ will not run on $bad" bash -c 'cat bad/link-*.out'
check "and runs elsewhere" test "$(field bad 'of("begin")[1]["host"]')" != "$bad"
check "to its end" wait_for over bad

make_job gone 100000
expect "a chain to be cancelled" 'queued job' $submit gone.json --run gone --walltime 5min
two_queued() { [ "$(field gone 'len(of("queued"))')" -ge 2 ]; }
check "and queues its second link" wait_for two_queued
expect "is cancelled" 'cancelled [0-9]+, [0-9]+.*exit 0' lockstep submit --cancel gone
check "and leaves the queue" wait_for queue_empty

[ "$failures" = 0 ] || for file in */link-*.out; do echo "== $file"; tail -5 "$file"; done
echo "faults injected: $(($(cat plug-*.txt | grep -c 'lost its power') + 1))"  # and the controller
echo "chain: $failures failed, $SECONDS s"
[ "$failures" = 0 ]
