#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The newcomer's task: 37 breeds of the Oxford-IIIT Pet photographs by transfer learning from ImageNet weights, then
# cats against dogs. run.sh PETS [OUT]; PETS holds images/ and annotations/trainval.txt, and is judged on the official
# test half where it has annotations/test.txt too. `lockstep` must be on the PATH.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
pets=$(realpath "${1:?usage: run.sh PETS [OUT]}")
out=${2:-runs}
mkdir -p "$out" && cd "$out"

run() { printf '\n$ %s\n' "$*"; "$@"; }
run python3 "$here/split.py" "$pets" pets
[ -s models/efficientnet_lite0.safetensors ] || run lockstep get weights efficientnet_lite0
judged=validate
[ -d pets/breeds/test ] && judged=test
run lockstep train "$here/breeds.json" --run breeds
run lockstep eval breeds --data $judged
run lockstep report breeds
run lockstep train "$here/species.json" --run species
run lockstep eval species --data $judged
run lockstep report species
