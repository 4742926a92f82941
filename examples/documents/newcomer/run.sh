#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the page docs/documents/newcomer.md; further arguments go to the command (--report FILE.md, --json FILE: full paths).
# The machine is the newcomer's own desk: 60 W beside the processor or GPU, no building around it.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"
exec lockstep plan job.json --advise cpu-or-gpu --on i7-8700,colab,t4 --gpus 1 --validation-samples 1478 \
  --beside beside.json --assume node_watts=60 --assume pue=1 --assume kwh=0.30USD "$@"
