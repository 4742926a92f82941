#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the page docs/documents/deepsim.md; further arguments go to the command (--report FILE.md, --json FILE: full paths).
# The load: "96-CPU simulations that take days" is counted as three days on 96 cores.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"
exec lockstep plan --advise buy --budget 9800GBP --parts 2021 --jobs resnet50.json,resnet152.json --cpu-load psp=72@96 \
  --against 'rtx3090*2,threadripper-3970x,ram-128,ssd-2tb,hdd-4tb,case,psu-1200,motherboard' \
  --assume kwh=0.30GBP --life 3,5 --beside beside.json "$@"
