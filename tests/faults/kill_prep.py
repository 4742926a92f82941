#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `lockstep prep` at every call by which it changes the disk, then at seeded moments: kill_prep.py [SECONDS] [SEED]

First a small set of each kind is made again and again; disk_shim.c, preloaded, lets the N-th such call go wrong: SIGKILL
before it, SIGKILL in the middle of it or right behind it, ENOSPC, EIO. The same command must then complete the set.
Then rounds until SECONDS are over: each packs the same folder of images through as many kills as fall into it, on one
to four threads, and finished shards are not written again; the seed is printed. In both, every file must be that of the
set that nobody disturbed, to the byte, and nothing else is left in the folder.
"""
import concurrent.futures
import hashlib
import os
import random
import shutil
import subprocess
import sys
import time

from supervised import FAULTS_OF_A_CALL, LOCKSTEP, build_shim, faults_at_calls, folder_for, rounds_until, seed_from, verdict


def content(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def finished(folder):
    """Finished shards: their notes, and the inode of each tar file, which a second writing would change."""
    return {note.stem: (folder / note.stem.split("-")[0] / f"{note.stem}.tar").stat().st_ino
            for note in (folder / ".work").glob("*-*.json")}


def prep(where, words, **variables):
    return subprocess.Popen([LOCKSTEP, "prep", *words], cwd=where, env=dict(os.environ, **variables), text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def run(where, words, **variables):
    """Exit code and what it said."""
    process = prep(where, words, **variables)
    said = process.communicate(timeout=300)[1]
    return process.returncode, said


def must_run(where, words, **variables):
    code, said = run(where, words, **variables)
    if code != 0:
        sys.exit(f"prep {' '.join(words)}: exit code {code}\n{said}")


def shards(to, threads):
    return ["images/train", "--to", to, "--shard-size", "64 KiB", "--validate", "0.2", "--threads", str(threads)]


SMALL = ["--count", "10", "--classes", "2", "--image-size", "32", "--threads", "1"]
SETS = {
    "shards": ["few/train", "--shard-size", "64 KiB", "--validate", "0.2", "--threads", "1"],
    "shapes": ["--synthesize", "shapes", *SMALL],
    "coco": ["--synthesize", "coco", *SMALL],
    "kitti": ["--synthesize", "kitti", *SMALL],
    "captions": ["--synthesize", "captions", *SMALL],
}


def one_fault(where, shim, name, words, how, at, whole):
    """Returns what went wrong, as a text; empty: nothing."""
    to = where / f"prepared-{name}-{how}-{at}"
    words = [*words, "--to", str(to)]
    code, said = run(where, words, LD_PRELOAD=str(shim), SHIM_UNDER="/prepared-", SHIM_HOW=how, SHIM_AT=str(at))
    if code not in ((-9,) if how in ("kill", "torn") else (0, 3)):
        return f"exit code {code}\n{said}"
    code, said = run(where, words)
    if code != 0:
        return f"did not go on, exit code {code}\n{said}"
    if content(to) != whole:
        return "other files than those of the undisturbed set"
    shutil.rmtree(to)
    return ""


def every_call(where, shim, pool, rng, end):
    """Returns the numbers of faults that passed and failed. On a slow disk the time is over before each was tried."""
    passed = failed = 0
    for name, words in SETS.items():
        count = where / f"{name}.calls"
        must_run(where, [*words, "--to", str(where / f"prepared-{name}")], LD_PRELOAD=str(shim), SHIM_UNDER="/prepared-",
                 SHIM_COUNT=str(count))
        whole, calls = content(where / f"prepared-{name}"), count.read_text().split()
        cases = [(how, at) for at in range(len(calls)) for how in FAULTS_OF_A_CALL]
        rng.shuffle(cases)
        good, bad = faults_at_calls(calls, pool, lambda how, at: one_fault(where, shim, name, words, how, at, whole), cases, end)
        passed, failed = passed + good, failed + bad
        print(f"{name}: {good + bad} of {len(cases)} faults at {len(calls)} calls", flush=True)
    return passed, failed


def one_round(where, to, rng, length, whole):
    """Returns the number of kills, or a text that says what went wrong."""
    for kills in range(200):
        before = finished(where / to) if (where / to / ".work").exists() else {}
        process = prep(where, shards(to, rng.randint(1, 4)))
        try:
            said = process.communicate(timeout=rng.uniform(0.02, 0.6) * length if kills < 30 else 120)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            if (where / to / "dataset.json").exists():
                continue  # all is written, the notes are being removed
            now = finished(where / to) if (where / to / ".work").exists() else {}
            if any(now.get(name) != inode for name, inode in before.items()):
                return "a finished shard was written again"
            continue
        if process.returncode != 0:
            return f"exit code {process.returncode}\n{said}"
        return kills if content(where / to) == whole else "other bytes than the undisturbed set"
    return "never came to its end"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rng = random.Random(seed_from(sys.argv, 2))
    with folder_for("prep") as where, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        end = time.monotonic() + seconds
        must_run(where, ["--synthesize", "shapes", "--count", "600", "--image-size", "64", "--to", "images"])
        must_run(where, ["--synthesize", "shapes", "--count", "24", "--classes", "2", "--image-size", "128", "--to", "few"])
        passed, failed = every_call(where, build_shim(where), pool, rng, time.monotonic() + 6 * seconds)
        faults = passed + failed
        begin = time.monotonic()
        must_run(where, shards("whole", 2))
        length = time.monotonic() - begin
        whole = content(where / "whole")
        rounds, kills, wrong = rounds_until(end, lambda number: one_round(where, f"round{number}", rng, length, whole))
    print(f"{rounds} rounds, {kills} kills, {len(whole)} files, the same bytes each time")
    return verdict("kill_prep", passed + rounds, failed + wrong, faults + kills)


if __name__ == "__main__":
    sys.exit(main())
