#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of README.md in docs/pictures/ again, from real runs of the program: pictures.sh [BUILD]
# The report is that of the quickstart (`make quickstart`); without its run, a shorter one is trained. Needs chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$(realpath "${1:-build}")/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

lockstep plan examples/resnet50.json --on v100-32,a100-80,h200,minotauro --gpus 1,4 --report "$work/plan.html" > "$work/plan.txt"
if [ ! -e quickstart/run/eval.json ]; then
  lockstep prep --synthesize shapes --count 4000 --classes 10 --to quickstart/shapes
  lockstep train examples/shapes.json --run quickstart/run --ranks 2
  lockstep eval quickstart/run
fi
lockstep report quickstart/run --out "$work/report.html"

shoot() {  # shoot NAME HEIGHT: the upper part of a page, as a window shows it
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 --window-size="1180,$2" \
    --screenshot="docs/pictures/$1.png" "file://$work/$1.html" > "$work/chromium.log" 2>&1 || { cat "$work/chromium.log"; exit 3; }
  echo "docs/pictures/$1.png: $(stat -c %s "docs/pictures/$1.png") bytes"
}
shoot plan 775
shoot report 700
