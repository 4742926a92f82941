#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# FastBox and Mask R-CNN through the queue of a real Slurm, each as a chain of jobs of two ranks: a link is killed without
# warning once it has saved, the next goes on, and the weights have the bits of the run that nobody disturbed. Forty seconds.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 2400 "$HERE/slurm.sh" run "$HERE/detectors.sh"

. "$HERE/common.sh" detectors
kills=0

saves() { [ "$(grep -cs '"event":"save"' "$1/journal.jsonl")" -ge "$2" ]; }

python3 - << 'PY'
import json
common = {"data": {"train": "synthetic", "samples": 96, "threads": 1}, "checkpoint": {"every_epochs": 0.125, "keep": 2},
          "evaluation": {"every_epochs": 0}, "training": {"global_batch": 12, "steps": 24, "threads": 1, "optimizer": {"name": "sgd", "lr": 0.01, "momentum": 0.9}}}
jobs = {
    "fastbox": {"task": "detect", "model": {"name": "fastbox_resnet18", "width": 8, "classes": 2}, "size": [64, 96]},
    "maskrcnn": {"task": "instances", "model": {"name": "maskrcnn_resnet18_fpn", "width": 8, "classes": 3}, "size": [64, 64],
                 "instances": {"slots": 4, "min_size": 64, "max_size": 64, "mask_size": 28, "proposals": 32, "evaluated_proposals": 16,
                               "anchor_samples": 32, "roi_slots": 16, "detections": 8}}}
for name, job in jobs.items():
    size = job.pop("size")
    json.dump({**common, **job, "name": name, "data": {**common["data"], "image_size": size}}, open(f"{name}.json", "w"))
PY
submit="lockstep submit --on lab.json --ranks-per-node 2 --no-plan --walltime 10min"
for net in fastbox maskrcnn; do
  echo 6 > $net-chain.gate  # it does not save a later step before its link is killed
  expect "$net: the undisturbed run" 'queued job [0-9]+' $submit $net.json --run $net-straight --site 'scheduler.extra=["--nodelist=n4"]'
  expect "$net: a chain" 'queued job [0-9]+; each queues the next' $submit $net.json --run $net-chain --site 'scheduler.extra=["--exclude=n4"]'
  for link in 1 2; do
    if wait_for saves $net-chain $((6 * link)); then kill_link $net-chain; kills=$((kills + 1))
    else fail "$net: link $link saves" $net-chain/chain.jsonl; fi
    echo $((6 * (link + 1))) > $net-chain.gate
  done
  rm $net-chain.gate
done
for run in fastbox-straight fastbox-chain maskrcnn-straight maskrcnn-chain; do
  if wait_for over $run; then ok "$run is over"; else fail "$run is over" $run/chain.jsonl; fi
done
for net in fastbox maskrcnn; do
  check "$net: over at least 3 links" test "$(links $net-chain)" -ge 3
  expect "$net: the bits of the undisturbed run" '^exit 0' cmp $net-chain/weights.safetensors $net-straight/weights.safetensors
done
[ "$failures" = 0 ] || for file in */link-*.out; do echo "== $file"; tail -5 "$file"; done
echo "faults injected: $kills"
echo "detectors: $failures failed, $SECONDS s"
[ "$failures" = 0 ]
