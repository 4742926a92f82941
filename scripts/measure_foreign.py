#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What plain PyTorch takes for the steps of scripts/foreign_steps.py on this GPU: measure_foreign.py [SECONDS] > FILE.json

Each in a process of its own: milliseconds of a step (median of 20 behind 6), peak allocated and reserved bytes of the warm
steps, and for those that rules may be made of (FITTED) the device's milliseconds by operator. Stops after SECONDS.
"""
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def measure(name):
    import torch
    import foreign_steps
    step = foreign_steps.STEPS[name][1]()
    for _ in range(6):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    row = {"what": "step of plain PyTorch", "model": name, "batch": foreign_steps.STEPS[name][0],
           "seconds": statistics.median(times), "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
           "peak_reserved_bytes": torch.cuda.max_memory_reserved(), "fitted": name in foreign_steps.FITTED,
           "machine": torch.cuda.get_device_name(), "source": f"torch {torch.__version__}"}
    if row["fitted"]:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA,
                                                torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(3):
                step()
            torch.cuda.synchronize()
        seconds = collections.Counter()
        for event in profile.key_averages():
            if event.self_device_time_total > 0 and event.key.startswith("aten::"):
                seconds[event.key] += event.self_device_time_total / 3e6
        row["device_seconds"] = {key: round(value, 7) for key, value in seconds.most_common(25)}
    print(json.dumps(row), flush=True)


def main():
    import foreign_steps
    end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 600)
    rows = []
    for name in [*foreign_steps.JUDGED, *foreign_steps.FITTED]:
        left = end - time.monotonic()
        if left < 10:
            break
        try:
            done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, timeout=left)
            if done.returncode == 0:
                rows.append(json.loads(done.stdout.splitlines()[-1]))
            else:
                print(f"{name}: {done.stderr[-600:]}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            print(f"{name}: no time is left", file=sys.stderr)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--one"] else main()
