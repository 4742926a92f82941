#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The breeds once more, from the folder of photographs and from shards that prep made of it in the folder's order: the
# same recipe and split must give the same weights, bit for bit.
#   from_shards.sh PETS [OUT] [options of train, e.g. --device cuda, --set training.seed=2]
set -euo pipefail
here=$(dirname "$(realpath "$0")")
pets=$(realpath "${1:?usage: from_shards.sh PETS [OUT] [options of train]}")
out=${2:-runs}
shift $(($# < 2 ? $# : 2))
mkdir -p "$out" && cd "$out"

run() { printf '\n$ %s\n' "$*"; "$@"; }
run python3 "$here/split.py" "$pets" pets
[ -s models/efficientnet_lite0.safetensors ] || run lockstep get weights efficientnet_lite0
run rm -rf breeds
run cp -rL pets/breeds breeds  # prep reads nothing outside of its folder, and the links of split.py lead out
run lockstep prep breeds --to set --keep-order
run lockstep train "$here/breeds.json" --run folder "$@"
run lockstep train "$here/breeds.json" --run shards --set data.train=set/train --set data.validate=set/validate "$@"
run cmp folder/weights.safetensors shards/weights.safetensors
echo "the same weights"
