#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes longer: kill -9 everywhere, sanitizer builds, a real Slurm, longer fuzzing. Time-boxed; says what it did and
# what it left out, and how many faults it injected. LONG_SECONDS (default 2700) is the box; nothing runs beyond 250 s more.
#   test_long.sh           what the box holds; what passed longest ago goes first (scripts/turns.py)
#   test_long.sh PART...   these parts
#   test_long.sh --list    the parts: when it runs, name, seconds
# What passed at a commit is written into results/test_long.json: commit that too.
set -uo pipefail
cd "$(dirname "$0")/.."
# The same 16-bit kernels on every machine: some virtual machines announce AMX tiles and die of them, PyTorch too.
export ONEDNN_MAX_CPU_ISA=${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_BF16}
# What else runs here must not decide how many threads compute, and with them the bits.
export LOCKSTEP_BUSY_CORES=0
# The faults of one change are those of the next, so that none is blamed for what another left; test-all draws new ones.
export SEED=${SEED:-1}
box=${LONG_SECONDS:-2700}
least_faults=100
passed=0 failed=0 skipped=0 faults=0 results=() passes=() only=("$@")
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
  local limit=$((10 * needs + 120)) left=$((box + 250 - SECONDS)) cut=
  [ "$limit" -lt "$left" ] || { limit=$left cut=yes; }
  timeout -k 10 "$limit" bash -c '"$@"' part "$@" 2>&1 | tee "$said"  # a function of this script, too
  code=${PIPESTATUS[0]} took="$((SECONDS - start)) s of about $needs"
  faults=$((faults + $(awk '/^faults injected: [0-9]+$/ { sum += $3 } END { print sum + 0 }' "$said")))
  if [ "$code" = 0 ]; then passed=$((passed + 1)); results+=("ok    $name $took"); passes+=("$name=$((SECONDS - start))")
  elif [ "$cut" ] && [[ $code = 124 || $code = 137 && $((SECONDS - start)) -ge $limit ]]; then skipped=$((skipped + 1)); results+=("skip  $name: the box was over after $took")
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
# All in one view: installing Slurm takes 15-30 s.
slurm() {
  tests/slurm/slurm.sh run bash -c 'for each in login_node chain collection workflow via detectors; do tests/slurm/$each.sh || exit 1; done'
}
export -f sanitized fuzz unity_off slurm

# NAME SECONDS COMMAND. What every landing must see: the faults of saving and going on, and clang-tidy, which looks at what
# this landing changes.
always=("saves 90 python3 tests/faults/kill_saves.py" "faults 130 python3 tests/faults/kill_resume.py 120"
  "out-of-memory 20 python3 tests/faults/out_of_memory.py" "cut-link 40 tests/faults/cut_link.sh"
  "tidy 450 python3 scripts/tidy.py --seconds 440")
# The box does not hold these at once: they take turns.
turns=("every-step 320 python3 tests/faults/every_step.py"
  "detectors 170 python3 tests/faults/every_step.py 5 $SEED detectors" "asan 440 sanitized asan" "tsan 360 sanitized tsan"
  "slurm 430 slurm" "signals 60 python3 tests/faults/signals.py" "detect 120 python3 tests/faults/detect.py"
  "ranks 40 python3 tests/faults/kill_ranks.py"
  "campaign 225 python3 tests/faults/campaign.py 200" "fuzz 270 fuzz" "bare 100 tests/house/bare_build.sh"
  "predict-faults 150 python3 tests/faults/kill_predict.py 100" "soak 120 python3 tests/faults/loader_soak.py"
  "fastbox 80 python3 tests/learning/fastbox.py" "unity-off 500 unity_off core_rooms"
  "parts 80 python3 tests/faults/kill_parts.py 60"
  "instances 60 python3 tests/learning/instances.py" "loss-curves 120 .deps/oracles/bin/python tests/learning/loss_curves.py"
  "unity-off-torch 520 unity_off torch_rooms"
  "virtual-ranks 80 python3 tests/faults/kill_virtual.py" "prep-faults 70 python3 tests/faults/kill_prep.py 60"
  "serve-soak 60 python3 tests/serve/soak.py" "tune-faults 30 .deps/oracles/bin/python tests/faults/kill_tune.py"
  "workflow-faults 50 python3 tests/faults/kill_workflow.py 40"
  "store-faults 70 python3 tests/faults/kill_store.py 60" "onnx 260 .deps/oracles/bin/python tests/oracles/onnx.py all")

if [ "${1:-}" = --list ]; then
  printf '%s\n' "${always[@]/#/always }" "${turns[@]/#/turn }" | cut -d' ' -f1-3
  exit
fi
declare -A row
for one in "${turns[@]}"; do row[${one%% *}]=$one; done
order=$(python3 scripts/turns.py order "${turns[@]%% *}") || exit 1
for one in "${always[@]}"; do part $one; done  # unquoted: words
for name in $order; do part ${row[$name]}; done
[ ${#passes[@]} -eq 0 ] || python3 scripts/turns.py passed "${passes[@]}"

printf '\n%s\n' "${results[@]}"
echo "faults injected in all: $faults (at least $least_faults)"
if [ ${#only[@]} -eq 0 ] && [ "$faults" -lt "$least_faults" ]; then
  failed=$((failed + 1)); echo "FAIL  too few faults"
fi
echo "test-long: $passed passed, $failed failed, $skipped skipped, $SECONDS s"
[ "$failed" -eq 0 ]
