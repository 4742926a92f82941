#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How far to trust the breeds: a new head on the frozen features of EfficientNet-Lite0, calibrated on photographs that it
# was not trained on. trust.sh PETS [OUT]; PETS as for run.sh, of whose photographs 40 % are held back. Minutes on one
# core. `lockstep` must be on the PATH.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
pets=$(realpath "${1:?usage: trust.sh PETS [OUT]}")
out=${2:-trust}
mkdir -p "$out" && cd "$out"

run() { printf '\n$ %s\n' "$*"; "$@"; }
run python3 "$here/split.py" "$pets" pets 0.4
[ -s models/efficientnet_lite0.safetensors ] || run lockstep get weights efficientnet_lite0
run lockstep train "$here/trust.json" --run breeds
run lockstep predict breeds pets/breeds/validate --to raw.csv  # before it is calibrated: for tests/learning/coverage.py
run lockstep eval breeds --calibrate --features --leakage --explain
run lockstep report breeds
