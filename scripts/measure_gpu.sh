#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures one NVIDIA GPU for the forecast: measure_gpu.sh OUT [SECONDS] [PYTHON]. Writes into the folder OUT, each file
# as it grows, so that what is there when the time is over counts:
#   cells.json         memory, time and energy of the real step, one row a cell
#   operators.json     every operator of those steps: its own time, launches, scratch bytes
#   calibration.json   single operators over their sizes
#   recordings.tar.gz  the allocator's first three steps of each cell
#   doctor.json        what the machine is
#   log.txt            what was said
# SECONDS (default 560) is the time for all of it. PYTHON (default python3) is one that has the wheel torch==2.11.0: its
# libraries are used. LOCKSTEP (default build/bin/lockstep) is the program. ONLY chooses cells by a part of their name.
set -u
out=${1:?usage: measure_gpu.sh OUT [SECONDS] [PYTHON]}
seconds=${2:-560}
python=${3:-python3}
lockstep=${LOCKSTEP:-$(dirname "$0")/../build/bin/lockstep}
mkdir -p "$out"
started=$(date +%s)
left() { echo $((seconds - ($(date +%s) - started))); }

site=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || exit 3
libraries=$site/torch/lib
for folder in "$site"/nvidia/*/lib; do libraries=$libraries:$folder; done
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

say() { echo "== $* ($(left) s left)" | tee -a "$out/log.txt" >&2; }
# Ends by itself before the time is over; killed when it does not.
run() {
  limit=$1
  shift
  say "$*"
  timeout "$((limit + 20))" "$@" 2>>"$out/log.txt" >>"$out/log.txt"
  code=$?
  [ $code -eq 0 ] || say "exit code $code; the last lines: $(tail -3 "$out/log.txt" | tr '\n' ' ')"
}

run 30 "$lockstep" doctor --json "$out/doctor.json"
# Two thirds for the cells, which need a process each; the rest for the sweep.
cells=$((seconds * 68 / 100))
run "$cells" "$lockstep" bench cells --device cuda --here --json "$out/cells.json" --operators "$out/operators.json" \
  --allocator "$out/recordings" --seconds "$cells" --cell-seconds 90 --only "${ONLY:-}"
rest=$(($(left) - 25))
[ "$rest" -gt 10 ] && run "$rest" "$lockstep" bench calibrate --device cuda --here --seconds "$rest" \
  --json "$out/calibration.json"
if [ -d "$out/recordings" ]; then
  tar -C "$out" -czf "$out/recordings.tar.gz" recordings && rm -r "$out/recordings"
fi
say "done: $(ls "$out" | tr '\n' ' ')"
[ -s "$out/cells.json" ]
