#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Proves the NCCL group on one GPU: on_gpu.sh BUILD [PYTHON] [cmake arguments]. Builds with the libtorch of the wheel
# that PYTHON (default python3) has, runs the contract of every group through NCCL with one rank, then trains a small
# job on that group and once without it.
set -eu
build=${1:?usage: on_gpu.sh BUILD [PYTHON] [cmake arguments]}
python=${2:-python3}
[ $# -ge 2 ] && shift 2 || shift
cd "$(dirname "$0")/../.."
site=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
cmake -S . -B "$build" -G Ninja -DLOCKSTEP_TORCH="$site" "$@" > "$build.cmake.log" 2>&1 || { cat "$build.cmake.log"; exit 3; }
grep -i nccl "$build.cmake.log" || true
ninja -C "$build" lockstep lockstep_torch test_nccl > "$build.log" 2>&1 || { grep -E 'error|FAILED' "$build.log"; exit 3; }
"$build/bin/test_nccl"
work=$(mktemp -d)
cat > "$work/job.json" <<'JOB'
{"name": "gpu", "data": {"train": "synthetic", "validate": "synthetic", "samples": 2000, "image_size": 64},
 "model": {"name": "resnet18", "classes": 10}, "training": {"global_batch": 100, "epochs": 3}}
JOB
"$build/bin/lockstep" train "$work/job.json" --device cuda --run "$work/alone" --here
LOCKSTEP_RENDEZVOUS=$work/meeting "$build/bin/lockstep" train "$work/job.json" --device cuda --run "$work/nccl" --here
