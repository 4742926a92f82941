#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `lockstep predict ... --to FILE.jsonl` at every call by which it changes the disk, then at seeded moments:
kill_predict.py [SECONDS] [SEED]

First one process works through a small collection again and again; disk_shim.c, preloaded, lets the N-th such call go
wrong: SIGKILL before it, SIGKILL in the middle of it or right behind it, ENOSPC, EIO; in a seeded order, until two thirds
of the SECONDS are over. Then rounds in the rest of them: each works through a larger collection through as many kills of all its processes as fall into it, on one or two ranks.
The same command must then finish it, and the result must have each image once, with the record that it has in the
result that nobody disturbed, apart from the time. The seed is printed.
"""
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from supervised import (FAULTS_OF_A_CALL, GONE, LOCKSTEP, build_shim, faults_at_calls, folder_for, members, rounds_until, seed_from, until,
                        verdict)


def predict(where, images, to, *words, **variables):
    return subprocess.Popen([LOCKSTEP, "predict", "run", images, "--to", str(where / f"{to}.jsonl"), *words], cwd=where, text=True,
                            env=dict(os.environ, OMP_NUM_THREADS="1", **variables), stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, start_new_session=True)


def run(*arguments, **variables):
    """Exit code and what it said."""
    process = predict(*arguments, **variables)
    said = process.communicate(timeout=300)[1]
    return process.returncode, said


def records(where, to):
    """All of it but the times, in order."""
    rows = [json.loads(line) for line in (where / f"{to}.jsonl").read_text().splitlines()]
    for row in rows:
        del row["time"]
    return rows


def remove(where, to):
    shutil.rmtree(where / f"{to}.files", ignore_errors=True)
    for name in (f"{to}.jsonl", f"{to}.html", f"{to}.jsonl.draft"):
        (where / name).unlink(missing_ok=True)


def one_fault(where, shim, how, at, whole):
    """Returns what went wrong, as a text; empty: nothing."""
    to = f"found-{how}-{at}"
    code, said = run(where, "few", to, LD_PRELOAD=str(shim), SHIM_UNDER="/found-", SHIM_HOW=how, SHIM_AT=str(at))
    if code not in ((-9,) if how in ("kill", "torn") else (0, 3)):
        return f"exit code {code}\n{said}"
    code, said = run(where, "few", to)
    if code != 0:
        return f"did not go on, exit code {code}\n{said}"
    if records(where, to) != whole:
        return "other records than those that nobody disturbed"
    left = [path.name for path in where.glob(f"{to}.*") if path.name not in (f"{to}.jsonl", f"{to}.files")]
    remove(where, to)
    return f"left behind: {left}" if left else ""


def every_call(where, shim, pool, rng, end):
    """Returns the numbers of faults that passed and failed."""
    count = where / "calls"
    code, said = run(where, "few", "found-calls", LD_PRELOAD=str(shim), SHIM_UNDER="/found-", SHIM_COUNT=str(count))
    if code != 0:
        sys.exit(f"exit code {code}\n{said}")
    whole, calls = records(where, "found-calls"), count.read_text().split()
    cases = [(how, at) for at in range(len(calls)) for how in FAULTS_OF_A_CALL]
    rng.shuffle(cases)
    passed, failed = faults_at_calls(calls, pool, lambda how, at: one_fault(where, shim, how, at, whole), cases, end)
    print(f"{passed + failed} of {len(cases)} faults at {len(calls)} calls", flush=True)
    return passed, failed


def one_round(where, to, rng, length, whole):
    """Returns the number of kills, or a text that says what went wrong."""
    for kills in range(100):
        ranks = rng.choice((["--ranks", "2"], []))
        process = predict(where, "many", to, *ranks)
        try:
            said = process.communicate(timeout=rng.uniform(0.3, 1.1) * length if kills < 12 else 120)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if not until(lambda: not members(process.pid), GONE):  # those that left the group are ended by their watchdogs
                return f"processes {members(process.pid)} are left"
            continue
        if process.returncode != 0:
            return f"exit code {process.returncode}\n{said}"
        return kills if records(where, to) == whole else "other records than those that nobody disturbed"
    return "never came to its end"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rng = random.Random(seed_from(sys.argv, 2))
    with folder_for("predict") as where, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        begin = time.monotonic()
        job = {"name": "t", "data": {"train": "shapes/train", "image_size": 32}, "model": {"name": "linear"},
               "training": {"global_batch": 16, "steps": 1}}
        (where / "job.json").write_text(json.dumps(job))
        for words in (["prep", "--synthesize", "shapes", "--count", "900", "--classes", "2", "--image-size", "64", "--to", "shapes"],
                      ["train", "job.json", "--run", "run"]):
            subprocess.run([LOCKSTEP, *words], cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (where / "shapes" / "train").rename(where / "many")
        (where / "few").mkdir()
        for image in sorted((where / "many").rglob("*.jpg"))[:20]:
            shutil.copy(image, where / "few" / image.name)
        (where / "few" / "bad.jpg").write_text("no image")
        passed, failed = every_call(where, build_shim(where), pool, rng, begin + seconds * 2 / 3)
        faults, end, begin = passed + failed, begin + seconds, time.monotonic()
        code, said = run(where, "many", "whole")
        if code != 0:
            sys.exit(f"exit code {code}\n{said}")
        length, whole = time.monotonic() - begin, records(where, "whole")
        rounds, kills, wrong = rounds_until(end, lambda number: one_round(where, f"round{number}", rng, length, whole))
    print(f"{rounds} rounds, {kills} kills, {len(whole)} images, each once, the same records each time")
    return verdict("kill_predict", passed + rounds, failed + wrong, faults + kills)


if __name__ == "__main__":
    sys.exit(main())
