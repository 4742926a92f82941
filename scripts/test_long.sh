#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes longer: sanitizer builds, a real Slurm, a kill -9 loop, longer fuzzing. Time-boxed; says
# what it did and what it left out. LONG_SECONDS (default 2700) is the box.
set -uo pipefail
cd "$(dirname "$0")/.."
box=${LONG_SECONDS:-2700}
passed=0 failed=0 skipped=0 results=()

part() {  # part NAME SECONDS COMMAND...: skipped when that much time is not left
  local name=$1 needs=$2 start=$SECONDS
  shift 2
  if [ $((SECONDS + needs)) -gt "$box" ]; then
    skipped=$((skipped + 1)); results+=("skip  $name: needs $needs s, $((box - SECONDS)) s of the box left"); return
  fi
  printf '\n== %s (at most %s s)\n' "$name" "$needs"
  local code=0
  timeout -k 10 "$needs" "$@" || code=$?
  if [ "$code" = 0 ]; then passed=$((passed + 1)); results+=("ok    $name $((SECONDS - start)) s")
  elif [ "$code" = 77 ]; then skipped=$((skipped + 1)); results+=("skip  $name: this machine cannot (see above)")
  else failed=$((failed + 1)); results+=("FAIL  $name $((SECONDS - start)) s"); fi
}

# The torch-free rooms under address and undefined-behaviour sanitizers (libtorch itself is not instrumented).
sanitized() {
  cmake --preset "$1" -DLOCKSTEP_TORCH=/nonexistent > "build-$1.log" 2>&1 || { cat "build-$1.log"; return 1; }
  ninja -C "build-$1" -j2 && ctest --test-dir "build-$1" -L unit --output-on-failure
}
export -f sanitized

part bare 600 tests/house/bare_build.sh
part asan 900 bash -c 'sanitized asan'
part tsan 900 bash -c 'sanitized tsan'
# Both in one view: installing Slurm takes 15-30 s.
part slurm 540 tests/slurm/slurm.sh run bash -c 'tests/slurm/login_node.sh && tests/slurm/chain.sh'
part faults 300 python3 tests/faults/kill_resume.py 120
part saves 300 python3 tests/faults/kill_saves.py 240
part ranks 300 python3 tests/faults/kill_ranks.py
part virtual-ranks 400 python3 tests/faults/kill_virtual.py
part signals 240 python3 tests/faults/signals.py
part detect 300 python3 tests/faults/detect.py
part every-step 420 python3 tests/faults/every_step.py
part campaign 420 python3 tests/faults/campaign.py 200
part cut-link 240 tests/faults/cut_link.sh
part prep-faults 200 python3 tests/faults/kill_prep.py 60
part soak 400 python3 tests/faults/loader_soak.py
part fuzz 800 bash -c 'tests/fuzz/build.sh build/fuzz && tests/fuzz/run.sh 45 build/fuzz'

printf '\n%s\n' "${results[@]}"
echo "test-long: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
