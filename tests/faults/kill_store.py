#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `lockstep store` at every call by which it changes the disk, then lets writers meet: kill_store.py [SECONDS] [SEED]

disk_shim.c, preloaded, lets the N-th such call of adding a first version, a second one, a tag or a rollback go wrong:
SIGKILL before it, SIGKILL in the middle of it or right behind it, ENOSPC, EIO; in a seeded order, until two thirds of the
SECONDS are over. Whatever happened, every checksum must hold and the tag must point to the version before or behind the
command; the same command must then succeed, and the store must have what it has when nobody disturbs it. Then rounds in
the rest of the time: several writers add their own and common versions and move a tag at once, each killed at seeded
moments and started again; no version may be lost or be there twice. The seed is printed.
"""
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import time

from supervised import LOCKSTEP, build_shim, folder_for, seed_from, verdict

WORDS = {"first": ["add", "one", "--name", "pets"], "second": ["add", "two", "--name", "pets"],
         "tag": ["tag", "pets", "2", "production"], "rollback": ["rollback", "pets"]}


def start(where, store, words, **variables):
    return subprocess.Popen([LOCKSTEP, "store", *words, "--store", str(store)], cwd=where, text=True,
                            env=dict(os.environ, **variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(where, store, words, **variables):
    """Exit code, what it gave and what it said."""
    process = start(where, store, words, **variables)
    gave, said = process.communicate(timeout=300)
    return process.returncode, gave, said


def must(where, store, *words):
    code, gave, said = run(where, store, words)
    if code != 0:
        raise RuntimeError(f"store {' '.join(words)}: exit code {code}\n{said}")
    return gave


def content(where, store):
    """{name: ids in order}, {tag: number}; every checksum holds."""
    must(where, store, "verify")
    rows = json.loads(must(where, store, "list", "--json", "-"))
    return [row["id"] for row in rows], {tag: row["version"] for row in rows for tag in row["tags"]}


def before(where, store, what):
    """The store as `what` finds it."""
    if what != "first":
        must(where, store, *WORDS["first"], "--tag", "production")
    if what in ("tag", "rollback"):
        must(where, store, *WORDS["second"])
    if what == "rollback":
        must(where, store, *WORDS["tag"])


def one_fault(where, shim, what, how, at, states):
    """Returns what went wrong, as a text; empty: nothing."""
    store = where / f"kept-{what}-{how}-{at}"
    old, new = states[what]
    if what != "first":
        shutil.copytree(where / f"start-{what}", store)
    code, _, said = run(where, store, WORDS[what], LD_PRELOAD=str(shim), SHIM_UNDER="/kept-", SHIM_HOW=how, SHIM_AT=str(at))
    if code not in ((-9,) if how in ("kill", "torn") else (0, 3)):
        return f"exit code {code}\n{said}"
    try:
        if (store / "store.json").exists():
            seen = content(where, store)
            if seen not in ((old, new) if code else (new,)):
                return f"neither as before nor as after: {seen}"
        else:
            seen = old
        if what != "rollback" or seen == old:  # a rollback that was done is not done twice
            must(where, store, *WORDS[what])
        if content(where, store) != new:
            return f"not as if nobody had disturbed it: {content(where, store)}"
    except RuntimeError as error:
        return str(error)
    shutil.rmtree(store)
    return ""


def every_call(where, shim, pool, rng, end):
    """Returns the numbers of faults that passed and failed."""
    states, cases = {}, []
    for what in WORDS:
        store, count = where / f"kept-{what}", where / f"calls-{what}"
        before(where, store, what)
        old = content(where, store) if what != "first" else ([], {})
        if what != "first":
            shutil.copytree(store, where / f"start-{what}")
        code, _, said = run(where, store, WORDS[what], LD_PRELOAD=str(shim), SHIM_UNDER="/kept-", SHIM_COUNT=str(count))
        if code != 0:
            sys.exit(f"{what}: exit code {code}\n{said}")
        states[what] = (old, content(where, store))
        calls = count.read_text().split()
        cases += [(what, how, at) for at in range(len(calls)) for how in ("kill", "torn", "enospc", "eio")]
    all_cases = len(cases)
    rng.shuffle(cases)
    passed = failed = 0
    at_once = len(os.sched_getaffinity(0))
    while cases and (time.monotonic() < end or passed + failed == 0):
        some, cases = cases[:at_once], cases[at_once:]
        for case, wrong in zip(some, pool.map(lambda case: one_fault(where, shim, *case, states), some)):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"{case[0]}, {case[1]} at call {case[2]}: {wrong}", flush=True)
    print(f"{passed + failed} of {all_cases} faults", flush=True)
    return passed, failed


def writer(where, store, number, rng, ids):
    """Adds its version and the common ones, through kills, until all of them are in; returns the number of kills."""
    kills = 0
    for name in (f"own{number}", "one", "two"):
        while True:
            process = start(where, store, ["add", name, "--name", "pets", "--tag", rng.choice(("production", "staging"))])
            try:
                gave, said = process.communicate(timeout=rng.uniform(0.005, 0.06) if kills < 8 else 120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                continue
            if process.returncode != 0:
                raise RuntimeError(f"exit code {process.returncode}\n{said}")
            ids.add(gave.split(": ")[1].split(";")[0])
            break
    return kills


def one_round(where, number, rng, pool, writers):
    """Returns the number of kills, or a text that says what went wrong."""
    store, ids = where / f"round{number}", set()
    try:
        kills = sum(pool.map(lambda i: writer(where, store, i, random.Random(rng.random()), ids), range(writers)))
        found, tags = content(where, store)
    except RuntimeError as error:
        return str(error)
    if {name[:12] for name in found} != ids or len(found) != writers + 2:
        return f"{len(found)} versions instead of {writers + 2}"
    return kills if set(tags) <= {"production", "staging"} and tags else f"tags: {tags}"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rng, writers = random.Random(seed_from(sys.argv, 2)), 3
    with folder_for("store") as where, concurrent.futures.ThreadPoolExecutor(writers) as pool:
        begin = time.monotonic()
        for name in ("one", "two", *(f"own{i}" for i in range(writers))):
            job = {"name": name, "data": {"train": "synthetic", "samples": 4, "image_size": 8}, "task": "classify",
                   "model": {"name": "linear", "classes": 2}, "training": {"global_batch": 4, "steps": 1, "seed": len(name)}}
            (where / "job.json").write_text(json.dumps(job))
            subprocess.run([LOCKSTEP, "train", "job.json", "--run", name], cwd=where, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        passed, failed = every_call(where, build_shim(where), pool, rng, begin + seconds * 2 / 3)
        faults, rounds, kills = passed + failed, 0, 0
        while not failed and (rounds == 0 or time.monotonic() < begin + seconds):
            result = one_round(where, rounds, rng, pool, writers)
            if isinstance(result, str):
                print(f"round {rounds}: {result}")
                failed += 1
            else:
                rounds, kills = rounds + 1, kills + result
    print(f"{rounds} rounds of {writers} writers, {kills} kills, every version once, every checksum right")
    return verdict("kill_store", passed + rounds, failed, faults + kills)


if __name__ == "__main__":
    sys.exit(main())
