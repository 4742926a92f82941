#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every fuzzer: build.sh OUT_DIR [NAME...]. A fuzzer is tests/fuzz/NAME_fuzz.cpp with LLVMFuzzerTestOneInput; its
# first lines name the sources it needs (globs are fine) and, after "libraries:", what it links:
#   // sources: lockstep/base/json.cpp lockstep/base/text.cpp libraries: -ljpeg
# The sources of a room are compiled as one unit, as the program's are (83 files took 150 s of CPU), which fuzzers that name
# the same ones share. Only what changed is compiled again. JOBS (default: the cores) at once.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { echo "usage: tests/fuzz/build.sh OUT_DIR [NAME...]" >&2; exit 2; }
out=$1
shift
command -v clang++-14 > /dev/null || { echo "clang++-14 not found (Debian: clang-14 libclang-rt-14-dev)" >&2; exit 3; }
mkdir -p "$out/objects"
flags=(-std=c++20 -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -I.)
launcher=()
command -v ccache > /dev/null && launcher=(ccache)

compile() {  # compile SOURCE OBJECT: with coverage for the fuzzer; skipped when nothing that it includes changed
  local source=$1 object=$2 newest
  if [ -f "$object" ] && [ -f "$object.d" ]; then
    newest=$(sed -e 's/^[^:]*://' -e 's/\\$//' "$object.d" | tr -s ' \n' '\n\n' | grep . | xargs ls -t 2> /dev/null | head -1)
    [ "$object" -nt "$newest" ] && return
  fi
  "${launcher[@]}" clang++-14 "${flags[@]}" -fsanitize=fuzzer-no-link -MMD -MF "$object.d" -c "$source" -o "$object"
}

jobs=${JOBS:-$(nproc)}
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT
behind() {  # behind COMMAND...: runs it in the background when there is room; what failed is in $failures
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  { "$@" || echo "$*" >> "$failures"; } &
}
all_well() {
  wait
  [ ! -s "$failures" ] || { sed 's/^/failed: /' "$failures" >&2; exit 1; }
}

unit() {  # unit SOURCE...: writes a source that includes these, all of one room, and gives its name
  local room=${1%/*} unit
  unit=$out/objects/${room//\//_}-$(printf '%s\n' "$@" | sort | sha256sum | cut -c1-8).cpp
  [ -f "$unit" ] || printf '%s\n' "$@" | sort | sed 's/.*/#include "&"/' > "$unit"
  echo "$unit"
}

declare -A queued=() links=()
for fuzzer in tests/fuzz/*_fuzz.cpp; do
  name=$(basename "$fuzzer" _fuzz.cpp)
  if [ $# -gt 0 ] && [[ ! " $* " == *" $name "* ]]; then continue; fi
  first=$(sed -n -e '/^\/\/ sources: /!q' -e 's/^\/\/ sources: //p' "$fuzzer" | tr '\n' ' ')
  [ -n "$first" ] || { echo "$fuzzer:1: the first line must be '// sources: ...'" >&2; exit 2; }
  sources=${first%%libraries:*}
  libraries=
  [[ $first != *libraries:* ]] || libraries=${first##*libraries:}
  objects=()
  declare -A rooms=()
  for source in $sources; do  # unquoted: globs
    [[ $source == *_test.cpp ]] || rooms[${source%/*}]+=" $source"
  done
  for source in $(for room in "${!rooms[@]}"; do unit ${rooms[$room]}; done) "$fuzzer"; do  # unquoted: words
    object=$out/objects/$(basename "$source" .cpp).o
    [ -n "${queued[$object]:-}" ] || behind compile "$source" "$object"
    queued[$object]=1
    objects+=("$object")
  done
  links[$name]="${objects[*]} $libraries"
done
all_well

link() { clang++-14 "${flags[@]}" -fsanitize=fuzzer $2 -o "$out/$1_fuzz" && echo "built $out/$1_fuzz"; }  # unquoted: words
for name in "${!links[@]}"; do behind link "$name" "${links[$name]}"; done
all_well
