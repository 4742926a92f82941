#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every built fuzzer for some seconds: run.sh SECONDS OUT_DIR [NAME...]. Seeds come from tests/fuzz/corpus/NAME; what
# a run finds new stays in OUT_DIR/found/NAME; an input that crashes, hangs or needs 2 GB is kept and named, exit 4.
# As many at once as there are cores (or JOBS). Every run tries the same inputs in the same order, as many as fit into the
# seconds on a slow machine, so that one change is not blamed for what another left; FUZZ_SEED=0 tries new ones for all the
# seconds, any other number others.
set -uo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 2 ] || { echo "usage: tests/fuzz/run.sh SECONDS OUT_DIR [NAME...]" >&2; exit 2; }
seconds=$1 out=$2
shift 2
jobs=${JOBS:-$(nproc)}
count=0
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT

# Inputs a second, a third less than two cores of 2020 do.
declare -A pace=([image]=1200 [coco]=9000 [job]=5500 [json]=14000 [lists]=9000 [mask]=13000 [pth]=15000 [radar]=3000 [recording]=3000
  [request]=8000 [results]=1000 [safetensors]=30000 [shard_index]=50000 [tar]=32000)

run_one() {  # run_one NAME: its outcome is one piece of text, also beside others
  local name=$1 seeds=() outcome runs=-1
  [ "${FUZZ_SEED:-1}" = 0 ] || runs=$((${pace[$name]:?"tests/fuzz/run.sh has no pace for $name"} * seconds))
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  if "$out/${name}_fuzz" -seed="${FUZZ_SEED:-1}" -runs="$runs" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$out/crashes/$name-" "$out/found/$name" "${seeds[@]}" > "$out/$name.log" 2>&1; then
    outcome="ok    $name: $(grep -o 'number_of_executed_units: [0-9]*' "$out/$name.log" | grep -o '[0-9]*$') inputs in at most $seconds s"
  else
    outcome=$(echo "FAIL  $name:"; tail -40 "$out/$name.log")
    echo "$name" >> "$failures"
  fi
  echo "$outcome"
}

for binary in "$out"/*_fuzz; do
  [ -x "$binary" ] || { echo "no fuzzers in $out: run tests/fuzz/build.sh $out first" >&2; exit 2; }
  name=$(basename "$binary" _fuzz)
  if [ $# -gt 0 ] && [[ ! " $* " == *" $name "* ]]; then continue; fi
  [ -f "tests/fuzz/${name}_fuzz.cpp" ] || continue  # a left-over of another branch
  mkdir -p "$out/found/$name" "$out/crashes"
  count=$((count + 1))
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  run_one "$name" &
done
wait
failed=$(wc -l < "$failures")
echo "fuzz: $count run, $failed failed"
[ "$failed" -eq 0 ] || exit 4
