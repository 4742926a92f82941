#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything a change must pass, in order of cost; every part runs, also after a failure. test.sh [PART...]
set -uo pipefail
cd "$(dirname "$0")/.."
# The same 16-bit kernels on every machine: some virtual machines announce AMX tiles and die of them, PyTorch too.
export ONEDNN_MAX_CPU_ISA=${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_BF16}
# What others do on the machine must not decide the threads of a run, and with them its bits.
export LOCKSTEP_BUSY_CORES=0
BUILD=${BUILD:-build}
JOBS=${JOBS:-2}
FUZZ_SECONDS=${FUZZ_SECONDS:-10}
export BUILD LOCKSTEP_BUILD=$BUILD
passed=0 failed=0 results=()
built=     # "yes" or "no" once everything was to be built; the parts then need not build what they run
fetching=  # the process that installs the oracles beside the build

cpu_seconds() { awk '{ print int(($14 + $15 + $16 + $17) / hz) }' hz="$(getconf CLK_TCK)" /proc/$$/stat; }

part() {  # part NAME COMMAND...: runs one part, keeps its time and outcome
  local name=$1 start=$SECONDS cpu outcome
  shift
  if [ ${#only[@]} -gt 0 ] && [[ ! " ${only[*]} " == *" $name "* ]]; then return; fi
  printf '\n== %s\n' "$name"
  cpu=$(cpu_seconds)
  if "$@"; then passed=$((passed + 1)) outcome=ok; else failed=$((failed + 1)) outcome=FAIL; fi
  results+=("$(printf '%-5s %-10s %4d s, %4d s of CPU' $outcome "$name" $((SECONDS - start)) $(($(cpu_seconds) - cpu)))")
}

# Only the oracles need the 5 GB of Python packages; they arrive while the rest is built and tested.
deps() {
  scripts/deps.sh build test torch || return 1
  scripts/deps.sh oracles radar &
  fetching=$!
}
fetched() {
  [ -n "$fetching" ] || { scripts/deps.sh oracles radar; return; }
  wait "$fetching" || return 1
  built=  # the NCCL plug-in is compiled with headers of these packages
}

build() { make --no-print-directory build BUILD="$BUILD" JOBS="$JOBS" TARGET="$*"; }
build_all() { if build all tests; then built=yes; else built=no; return 1; fi; }
need() {  # need TARGET...: nothing is tested that was built from other sources
  [ "$built" != yes ] || return 0
  [ "$built" != no ] || { echo "not run: the build failed"; return 1; }
  build "$@"
}

format() { git ls-files -z -co --exclude-standard '*.h' '*.cpp' | xargs -0 clang-format-14 --dry-run -Werror; }
tree() { python3 tests/tree/tree.py && python3 tests/tree/tree_test.py && python3 tests/house/loop_test.py; }
labelled() {
  local outcome made_up
  need all "$1_tests" || return 1
  ctest --test-dir "$BUILD" -j "$JOBS" -L "$1" --output-on-failure --no-tests=error
  outcome=$?
  # An answer of PBS that a test made up, since nobody has recorded it, is told also where the test passes.
  made_up=$(grep -c '^\[ unrecorded \]' "$BUILD/Testing/Temporary/LastTest.log")
  [ "${made_up:-0}" -eq 0 ] || echo "answers of PBS that nobody has recorded: $made_up"
  return $outcome
}
symbols() { need all && python3 scripts/symbols.py "$BUILD"; }
scenarios() { need all && python3 tests/scenarios/run.py; }
quickstart() { need all && tests/house/quickstart.sh; }
oracles() { fetched && need all probes && .deps/oracles/bin/python tests/oracles/run.py; }

pages() {
  local wrong=0
  need all || return 1
  for script in tests/pages/*.py; do
    python3 "$script" || wrong=$((wrong + 1))
  done
  [ $wrong -eq 0 ]
}

fuzz() { tests/fuzz/build.sh "$BUILD/fuzz" && tests/fuzz/run.sh "$FUZZ_SECONDS" "$BUILD/fuzz"; }

only=("$@")
part deps deps
part tree tree
part format format
part build build_all
part symbols symbols
part unit labelled unit
part mpi labelled mpi
part scenarios scenarios
part quickstart quickstart
part oracles oracles
part pages pages
part fuzz fuzz
[ -z "$fetching" ] || wait "$fetching" || { failed=$((failed + 1)); results+=("FAIL  deps.sh oracles"); }

printf '\n%s\n' "${results[@]}"
echo "test: $passed passed, $failed failed, $SECONDS s"
[ "$failed" -eq 0 ]
