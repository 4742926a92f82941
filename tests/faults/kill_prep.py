#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `lockstep prep` with SIGKILL at seeded moments until it ends: kill_prep.py [SECONDS] [SEED]

Each round prepares the same folder of pictures through as many kills as fall into it, on one to four threads; every
file must be that of the set that nobody disturbed, to the byte, finished shards are not written again, and nothing else
is left in the folder. Rounds until SECONDS are over; the seed is printed.
"""
import hashlib
import random
import subprocess
import sys
import time

from supervised import LOCKSTEP, folder_for, seed_from, verdict


def content(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def finished(folder):
    """Finished shards: their notes, and the inode of each tar file, which a second writing would change."""
    return {note.stem: (folder / note.stem.split("-")[0] / f"{note.stem}.tar").stat().st_ino
            for note in (folder / ".work").glob("*-*.json")}


def prepare(where, to, threads):
    return subprocess.Popen([LOCKSTEP, "prep", "pictures/train", "--to", to, "--shard-size", "64 KiB", "--validate", "0.2",
                             "--threads", str(threads)], cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def one_round(where, to, rng, length, whole):
    """Returns the number of kills, or a text that says what went wrong."""
    for kills in range(200):
        before = finished(where / to) if (where / to / ".work").exists() else {}
        process = prepare(where, to, rng.randint(1, 4))
        try:
            code = process.wait(timeout=rng.uniform(0.02, 0.6) * length if kills < 30 else 120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            if (where / to / "dataset.json").exists():
                continue  # all is written, the notes are being removed
            now = finished(where / to) if (where / to / ".work").exists() else {}
            if any(now.get(name) != inode for name, inode in before.items()):
                return "a finished shard was written again"
            continue
        if code != 0:
            return f"exit code {code}"
        return kills if content(where / to) == whole else "other bytes than the undisturbed set"
    return "never came to its end"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rng = random.Random(seed_from(sys.argv, 2))
    with folder_for("prep") as where:
        subprocess.run([LOCKSTEP, "prep", "--synthesize", "shapes", "--count", "600", "--image-size", "64", "--to", "pictures"],
                       cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begin = time.monotonic()
        assert prepare(where, "whole", 2).wait() == 0
        length = time.monotonic() - begin
        whole = content(where / "whole")
        rounds, kills, end = 0, 0, time.monotonic() + seconds
        while rounds == 0 or time.monotonic() < end:
            result = one_round(where, f"round{rounds}", rng, length, whole)
            if isinstance(result, str):
                print(f"round {rounds}: {result}")
                return verdict("kill_prep", rounds, 1, kills)
            rounds, kills = rounds + 1, kills + result
    print(f"{rounds} rounds, {kills} kills, {len(whole)} files, the same bytes each time")
    return verdict("kill_prep", rounds, 0, kills)


if __name__ == "__main__":
    sys.exit(main())
