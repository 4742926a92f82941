#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every built fuzzer for some seconds: run.sh SECONDS OUT_DIR [NAME...]. Seeds come from tests/fuzz/corpus/NAME; what
# a run finds new stays in OUT_DIR/found/NAME; an input that crashes, hangs or needs 2 GB is kept and named, exit 4.
set -uo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 2 ] || { echo "usage: tests/fuzz/run.sh SECONDS OUT_DIR [NAME...]" >&2; exit 2; }
seconds=$1 out=$2
shift 2
failed=0 count=0
for binary in "$out"/*_fuzz; do
  [ -x "$binary" ] || { echo "no fuzzers in $out: run tests/fuzz/build.sh $out first" >&2; exit 2; }
  name=$(basename "$binary" _fuzz)
  if [ $# -gt 0 ] && [[ ! " $* " == *" $name "* ]]; then continue; fi
  [ -f "tests/fuzz/${name}_fuzz.cpp" ] || continue  # a left-over of another branch
  mkdir -p "$out/found/$name" "$out/crashes"
  seeds=()
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  count=$((count + 1))
  if "$binary" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$out/crashes/$name-" "$out/found/$name" "${seeds[@]}" > "$out/$name.log" 2>&1; then
    echo "ok    $name: $(grep -o 'number_of_executed_units: [0-9]*' "$out/$name.log" | grep -o '[0-9]*$') inputs in $seconds s"
  else
    echo "FAIL  $name:"
    tail -40 "$out/$name.log"
    failed=$((failed + 1))
  fi
done
echo "fuzz: $count run, $failed failed"
[ "$failed" -eq 0 ] || exit 4
