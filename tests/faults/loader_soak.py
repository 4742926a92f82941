#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ten epochs of a set ten times larger than data.memory, by the loader: memory, leaks, look-ups by name.

Resident memory above what the program had before must stay below data.memory in every epoch and must not grow from the
first epochs (2 to 4) to the last three, each by its median: looked at when all that may be read ahead is there, one look
jitters by 0.3 MiB. Every sample is seen once an epoch; an epoch more costs no open and no stat more.
loader_soak.py [BUILD [SHARDS]]
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")
MEMORY = 22 << 20
MIB = 1 << 20


def made_shards(folder):
    drawn = [LOCKSTEP, "prep", "--synthesize", "shapes", "--count", "5400", "--classes", "4", "--image-size", "512"]
    subprocess.run(drawn + ["--to", "drawn"], cwd=folder, check=True, capture_output=True)
    packed = [LOCKSTEP, "prep", "drawn", "--to", "set", "--shard-size", "32MiB"]
    subprocess.run(packed, cwd=folder, check=True, capture_output=True)
    subprocess.run(["rm", "-rf", "drawn"], cwd=folder, check=True)
    return folder / "set/train"


def read(shards, order, epochs, preload=None):
    words = [LOCKSTEP, "bench", "loader", "--shards", str(shards), "--epochs", str(epochs), "--batch", "32", "--threads", "2",
             "--set", f"data.memory={MEMORY}B", "--set", "data.image_size=64", "--set", f"data.order={order}",
             "--set", "data.extent=1MiB", "--set", "data.window=4", "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **({"LD_PRELOAD": preload} if preload else {})})
    if done.returncode != 0:
        sys.exit(done.stderr)
    calls = [int(line.split()[-1]) for line in done.stderr.splitlines() if line.startswith("path calls:")]
    return json.loads(done.stdout)[0], calls[-1] if calls else None


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-soak-") as name:
        folder = pathlib.Path(name)
        shards = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else made_shards(folder)
        counter = str(folder / "path_calls.so")
        subprocess.run(["c++", "-O1", "-shared", "-fPIC", "-o", counter, str(ROOT / "tests/faults/path_calls.cpp")], check=True)
        for order in ("full", "windows"):
            row, _ = read(shards, order, 10)
            resident = row["resident_by_epoch"]
            print(f"{order}: {row['shard_bytes'] / MIB:.0f} MiB of shards, data.memory {MEMORY / MIB:.0f} MiB, "
                  f"at most {row['peak_bytes'] / MIB:.1f} MiB, by epoch " + " ".join(f"{r / MIB:.1f}" for r in resident) +
                  f" MiB, {row['samples_per_second']:.0f} samples/s")
            one, three = (read(shards, order, epochs, counter)[1] for epochs in (1, 3))
            print(f"{order}: look-ups by name in a run of one epoch {one}, of three {three}")
            checks = {"the set is ten times larger": row["shard_bytes"] >= 10 * MEMORY,
                      "within data.memory": row["peak_bytes"] <= MEMORY,
                      "no growth": statistics.median(resident[-3:]) - statistics.median(resident[1:4]) < MIB / 2,
                      "each sample once": row["samples_not_seen_once"] == 0,
                      "look-ups are counted": one is not None and one > 0,
                      "no look-up an epoch": one == three}
            for what, good in checks.items():
                passed, failed = passed + good, failed + (not good)
                if not good:
                    print(f"FAILED {order}: {what}")
    print(f"loader_soak: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
