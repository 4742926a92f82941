#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The newcomer's steps, each printed before it runs so that it can be repeated by hand: quickstart.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$(realpath "${1:-build}")/bin:$PATH"

run() {
  printf '\n\033[1m$ %s\033[0m\n' "$*"
  "$@"
}

echo "lockstep is $(command -v lockstep); the commands below are to be run from $(pwd)"
run lockstep doctor
run lockstep prep --synthesize shapes --count 4000 --classes 10 --to quickstart/shapes
rm -rf quickstart/run quickstart/linear
run lockstep train examples/shapes.json --run quickstart/run --ranks 2
run lockstep train examples/shapes.json --run quickstart/linear \
  --set name=linear --set model.name=linear --set training.optimizer.lr=0.001
run lockstep eval quickstart/run
run lockstep eval quickstart/linear --json quickstart/linear.json
run lockstep predict quickstart/run quickstart/shapes/validate/star/00[0-2]*.jpg
run lockstep report quickstart/run

echo
python3 - <<'PY'
import json
cnn = json.load(open("quickstart/run/eval.json"))
linear = json.load(open("quickstart/linear.json"))
print(f"validation accuracy: CNN {cnn['top1']:.3f}, linear model on the same pixels {linear['top1']:.3f}")
PY
echo "report: $(realpath quickstart/run/report.html)"
