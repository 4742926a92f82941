#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything a change must pass, in order of cost; every part runs, also after a failure. test.sh [PART...]
set -uo pipefail
cd "$(dirname "$0")/.."
# The same 16-bit kernels on every machine: some virtual machines announce AMX tiles and die of them, PyTorch too.
export ONEDNN_MAX_CPU_ISA=${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_BF16}
BUILD=${BUILD:-build}
JOBS=${JOBS:-2}
FUZZ_SECONDS=${FUZZ_SECONDS:-10}
passed=0 failed=0 results=()

part() {  # part NAME COMMAND...: runs one part, keeps its time and outcome
  local name=$1 start=$SECONDS
  shift
  if [ ${#only[@]} -gt 0 ] && [[ ! " ${only[*]} " == *" $name "* ]]; then return; fi
  printf '\n== %s\n' "$name"
  if "$@"; then passed=$((passed + 1)); results+=("ok    $name $((SECONDS - start)) s")
  else failed=$((failed + 1)); results+=("FAIL  $name $((SECONDS - start)) s"); fi
}

format() { git ls-files -z '*.h' '*.cpp' | xargs -0 clang-format-14 --dry-run -Werror; }
build() { make --no-print-directory build JOBS="$JOBS" CMAKE_FLAGS="-DLOCKSTEP_WERROR=ON -DLOCKSTEP_TESTS=ON"; }
tree() { python3 tests/tree/tree.py && python3 tests/tree/tree_test.py; }
labelled() { ctest --test-dir "$BUILD" -L "$1" --output-on-failure --no-tests=error; }
scenarios() { LOCKSTEP_BUILD=$BUILD python3 tests/scenarios/run.py; }

oracles() {  # every oracle decides on its own; all of them run
  local wrong=0
  for script in tests/oracles/*.py; do
    printf -- '-- %s\n' "$script"
    LOCKSTEP_BUILD=$BUILD .deps/oracles/bin/python "$script" || wrong=$((wrong + 1))
  done
  [ $wrong -eq 0 ]
}

pages() {
  local wrong=0
  for script in tests/pages/*.py; do
    LOCKSTEP_BUILD=$BUILD python3 "$script" || wrong=$((wrong + 1))
  done
  [ $wrong -eq 0 ]
}

fuzz() { tests/fuzz/build.sh "$BUILD/fuzz" && tests/fuzz/run.sh "$FUZZ_SECONDS" "$BUILD/fuzz"; }

only=("$@")
part deps scripts/deps.sh build test torch oracles
part tree tree
part format format
part build build
part symbols python3 scripts/symbols.py "$BUILD"
part tidy scripts/tidy.sh
part unit labelled unit
part mpi labelled mpi
part scenarios scenarios
part quickstart tests/house/quickstart.sh
part oracles oracles
part pages pages
part fuzz fuzz

printf '\n%s\n' "${results[@]}"
echo "test: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
