#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A million tiny files: drawn, prepared, verified and read once by the loader; seconds and peak memory of each.

measure_million.py [COUNT] [FILE]: COUNT PNGs of 8 x 8 pixels in 100 class folders (default 1000000) under a temporary
folder; rows to FILE as JSON. `lockstep` of $LOCKSTEP_BUILD (default build).
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCKSTEP = str(pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep")


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def draw(folder, count):
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    end = chunk(b"IEND", b"")
    noise = random.Random(1)
    for label in range(100):
        class_folder = folder / f"c{label:02d}"
        class_folder.mkdir(parents=True)
        for number in range(count // 100):
            pixels = noise.randbytes(192)
            rows = b"".join(b"\0" + pixels[24 * y:24 * y + 24] for y in range(8))
            (class_folder / f"{number:05d}.png").write_bytes(head + chunk(b"IDAT", zlib.compress(rows, 0)) + end)


def measured(what, words, folder):
    """A row: the seconds, the processor's seconds and the peak memory of one command."""
    print("$", " ".join(["lockstep"] + words), flush=True)
    start = time.monotonic()
    process = subprocess.Popen([LOCKSTEP] + words, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{what}: status {status}")
    row = {"what": what, "seconds": round(time.monotonic() - start, 1),
           "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1), "peak_bytes": usage.ru_maxrss * 1024,
           "command": "scripts/measure_million.py: lockstep " + " ".join(words)}
    print(row, flush=True)
    return row


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(prefix="lockstep-million-") as name:
        folder = pathlib.Path(name)
        draw(folder / "source", count)
        rows = [
            measured(f"{count:,} PNGs of 8 x 8 pixels in 100 folders to shards", ["prep", "source", "--to", "set"], folder),
            measured("every checksum compared, every image decoded", ["prep", "--verify", "set"], folder),
            measured("the train part read by the loader, one epoch", ["bench", "loader", "--shards", "set/train",
                                                                     "--epochs", "1", "--here"], folder),
        ]
        if len(sys.argv) > 2:  # now: removing a million files takes longer than all of it
            pathlib.Path(sys.argv[2]).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
