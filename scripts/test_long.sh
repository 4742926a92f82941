#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes longer: kill -9 everywhere, sanitizer builds, a real Slurm, longer fuzzing. Time-boxed; says what it did and
# what it left out, and how many faults it injected. LONG_SECONDS (default 2700) is the box; nothing runs beyond 250 s more.
#   test_long.sh           all of it
#   test_long.sh PART...   these parts
set -uo pipefail
cd "$(dirname "$0")/.."
# The same 16-bit kernels on every machine: some virtual machines announce AMX tiles and die of them, PyTorch too.
export ONEDNN_MAX_CPU_ISA=${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_BF16}
# What else runs here must not decide how many threads compute, and with them the bits.
export LOCKSTEP_BUSY_CORES=0
box=${LONG_SECONDS:-2700}
least_faults=100
passed=0 failed=0 skipped=0 faults=0 results=() only=("$@")
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# part NAME SECONDS COMMAND...: SECONDS is what it takes on two idle cores. Skipped when that much is not left of the box;
# ended when it takes far longer. Its lines "faults injected: N" are added up.
part() {
  local name=$1 needs=$2 start=$SECONDS code took
  shift 2
  if [ ${#only[@]} -gt 0 ] && [[ ! " ${only[*]} " == *" $name "* ]]; then return; fi
  if [ $((SECONDS + needs)) -gt "$box" ]; then
    skipped=$((skipped + 1)); results+=("skip  $name: needs $needs s, $((box - SECONDS)) s of the box left"); return
  fi
  printf '\n== %s (about %s s)\n' "$name" "$needs"
  local limit=$((4 * needs + 120)) left=$((box + 250 - SECONDS)) cut=
  [ "$limit" -lt "$left" ] || { limit=$left cut=yes; }
  timeout -k 10 "$limit" "$@" 2>&1 | tee "$said"
  code=${PIPESTATUS[0]} took="$((SECONDS - start)) s of about $needs"
  faults=$((faults + $(awk '/^faults injected: [0-9]+$/ { sum += $3 } END { print sum + 0 }' "$said")))
  if [ "$code" = 0 ]; then passed=$((passed + 1)); results+=("ok    $name $took")
  elif [ "$code" = 124 ] && [ "$cut" ]; then skipped=$((skipped + 1)); results+=("skip  $name: the box was over after $took")
  elif [ "$code" = 77 ]; then skipped=$((skipped + 1)); results+=("skip  $name: this machine cannot (see above)")
  else failed=$((failed + 1)); results+=("FAIL  $name $took, exit code $code; its last lines:" "$(tail -n 15 "$said")"); fi
}

# The torch-free rooms under address and undefined-behaviour sanitizers (libtorch itself is not instrumented).
sanitized() {
  cmake --preset "$1" -DLOCKSTEP_TORCH="$PWD/build-$1/absent" > "build-$1.log" 2>&1 || { cat "build-$1.log"; return 1; }
  ninja -C "build-$1" -j"${JOBS:-2}" all unit_tests && ctest --test-dir "build-$1" -L unit --output-on-failure
}
fuzz() { tests/fuzz/build.sh build/fuzz && tests/fuzz/run.sh 45 build/fuzz; }
# Every source of core_rooms or torch_rooms on its own: what it lacks, another file of its room may lend it in a unity build.
unity_off() {
  cmake -S . -B build-single -G Ninja -DLOCKSTEP_UNITY=OFF -DLOCKSTEP_TESTS=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0 > build-single.log 2>&1 \
    || { cat build-single.log; return 1; }
  ninja -C build-single -j"${JOBS:-2}" -k0 --quiet "$1"
}
unity_off_core() { unity_off core_rooms; }
unity_off_torch() { unity_off torch_rooms; }
export -f sanitized fuzz unity_off unity_off_core unity_off_torch

part every-step 320 python3 tests/faults/every_step.py
part detectors 170 python3 tests/faults/every_step.py 5 $RANDOM detectors
part saves 90 python3 tests/faults/kill_saves.py
part asan 440 bash -c 'sanitized asan'
part tsan 300 bash -c 'sanitized tsan'
# All in one view: installing Slurm takes 15-30 s.
part slurm 340 tests/slurm/slurm.sh run bash -c 'tests/slurm/login_node.sh && tests/slurm/chain.sh && tests/slurm/collection.sh'
part faults 130 python3 tests/faults/kill_resume.py 120
part ranks 40 python3 tests/faults/kill_ranks.py
part signals 110 python3 tests/faults/signals.py
part out-of-memory 20 python3 tests/faults/out_of_memory.py
part detect 120 python3 tests/faults/detect.py
part cut-link 40 tests/faults/cut_link.sh
part tidy 450 python3 scripts/tidy.py --seconds 440

# The box does not hold these at once: they take turns, and another one comes first with each commit and each day.
turns=("campaign 225 python3 tests/faults/campaign.py 200" "fuzz 270 bash -c fuzz" "bare 80 tests/house/bare_build.sh"
  "predict-faults 90 python3 tests/faults/kill_predict.py 60" "soak 120 python3 tests/faults/loader_soak.py"
  "fastbox 80 python3 tests/learning/fastbox.py" "unity-off 280 bash -c unity_off_core"
  "parts 80 python3 tests/faults/kill_parts.py 60"
  "instances 60 python3 tests/learning/instances.py" "unity-off-torch 520 bash -c unity_off_torch"
  "virtual-ranks 80 python3 tests/faults/kill_virtual.py" "prep-faults 70 python3 tests/faults/kill_prep.py 60")
first=$((10#$(date +%j) + $(git rev-list --count HEAD)))
for i in "${!turns[@]}"; do part ${turns[(i + first) % ${#turns[@]}]}; done  # unquoted: words

printf '\n%s\n' "${results[@]}"
echo "faults injected in all: $faults (at least $least_faults)"
if [ ${#only[@]} -eq 0 ] && [ "$faults" -lt "$least_faults" ]; then
  failed=$((failed + 1)); echo "FAIL  too few faults"
fi
echo "test-long: $passed passed, $failed failed, $skipped skipped, $SECONDS s"
[ "$failed" -eq 0 ]
