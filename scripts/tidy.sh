#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy on the sources that changed since a commit: tidy.sh [BASE]; `tidy.sh all` takes every source.
# Default base: origin/main where that is another commit, else the commit before this one.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-}
if [ -z "$base" ]; then
  base=HEAD~1
  if git rev-parse -q --verify origin/main >/dev/null && [ "$(git rev-parse origin/main)" != "$(git rev-parse HEAD)" ]; then
    base=$(git merge-base origin/main HEAD) || base=HEAD~1  # a shallow clone does not reach back to it
  fi
fi
if [ "$base" = all ] || ! git rev-parse -q --verify "$base" >/dev/null; then
  mapfile -t files < <(git ls-files 'lockstep/*.cpp' | grep -v _test.cpp)
else
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- 'lockstep/*.cpp' | grep -v _test.cpp)
fi
[ ${#files[@]} -gt 0 ] || { echo "tidy: no source changed since $base"; exit 0; }
# A compile database with one entry a file: the build itself joins each room into one unit.
cmake -S . -B build-tidy -G Ninja -DLOCKSTEP_UNITY=OFF -DLOCKSTEP_TESTS=OFF >/dev/null
ninja -C build-tidy generated/embedded.cpp >/dev/null
printf '%s\n' "${files[@]}" | xargs -P 2 -n 2 clang-tidy-14 -p build-tidy --quiet 2> >(grep -vE 'warnings (generated|treated)|^Suppressed|^Use -header' >&2)
echo "tidy: ${#files[@]} files clean"
