#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: forecast
"""A PyTorch memory snapshot becomes a recording that replays to the byte: snapshot.py

snapshot.pickle is the beginning of a real one (torch.cuda.memory._snapshot() on an H200: ResNet-18 under autocast, from
the start of the process), without stacks.
"""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "lockstep"
sys.path.insert(0, str(ROOT / "python"))
import lockstep  # noqa: E402


def replay(path, *options):
    done = subprocess.run([LOCKSTEP, "bench", "replay", path, *options, "--json", "-"], check=True, capture_output=True,
                          text=True)
    return json.loads(done.stdout)[0]


def check(what, holds):
    print(f"{'ok  ' if holds else 'FAIL'} {what}")
    return holds


def hostile(folder):
    path = folder / "hostile.pickle"
    path.write_bytes(pickle.dumps(os.system))
    try:
        lockstep.from_snapshot(path, folder / "x.rec")
    except pickle.UnpicklingError:
        return True
    return False


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "mine.rec"
        lockstep.from_snapshot(HERE / "snapshot.pickle", path, title="resnet18", gpu="NVIDIA H200")
        own = replay(path)
        small = replay(path, "--capacity", "256 MiB")
        other = replay(path, "--expandable-segments", "yes")
        good = [
            check(f"{own['blocks']} blocks, none at another address", own["exact"] and own["misplaced_blocks"] == 0),
            check(f"a GPU of 256 MiB runs out ({own['peak_reserved_bytes']} bytes were reserved)",
                  small["other_out_of_memory"]),
            check(f"with expandable segments {other['other_peak_reserved_bytes']}: another figure, within a page or two",
                  0 < abs(other["other_peak_reserved_bytes"] - own["peak_reserved_bytes"]) < 40 << 20),
            check("a pickle that calls something is refused", hostile(folder))]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
