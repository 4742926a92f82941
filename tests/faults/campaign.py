#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeded faults on supervised runs of 2 to 4 ranks: campaign.py [SECONDS] [SEED]

Each round trains one small job to its end through SIGKILL, SIGSTOP, SIGTERM and SIGUSR1 on random ranks, on mpirun and
on the supervisor, at random moments. What the supervisor can repair it must repair by itself; an orderly stop must end with
exit code 85 everywhere and go on with the same command; after a killed supervisor nothing may be left running. The
weights must be those of the run that nobody disturbed on as many ranks, to the bit: a sample that was lost or taken
twice would change them. The seed is printed; the same seed tries the same faults again.
"""
import collections
import random
import signal
import sys
import time

from supervised import Run, folder_for, gone, seed_from, send, until, verdict

JOB = {
    "name": "campaign",
    "data": {"train": "synthetic", "samples": 96, "image_size": 64},
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 12, "epochs": 8, "optimizer": {"name": "adamw", "lr": 0.001}, "ema_decay": 0.9,
                 "threads": 1},
    "checkpoint": {"every_epochs": 0.25, "keep": 2},
}
# (who, signal, weight, what must follow)
FAULTS = [("rank", signal.SIGKILL, 6, "repaired"), ("rank", signal.SIGSTOP, 2, "repaired"), ("rank", signal.SIGTERM, 2, "stopped"),
          ("rank", signal.SIGUSR1, 2, "stopped"), ("mpirun", signal.SIGKILL, 1, "repaired"), ("mpirun", signal.SIGTERM, 1, "stopped"),
          ("mpirun", signal.SIGUSR1, 1, "stopped"), ("supervisor", signal.SIGTERM, 1, "stopped"),
          ("supervisor", signal.SIGUSR1, 1, "stopped"), ("supervisor", signal.SIGKILL, 1, "all gone")]
LIMIT = 300  # seconds for anything to happen: it ends what hangs
FRUITLESS = 2  # restarts from one checkpoint that the supervisor allows (RestartRule), whatever --restarts says


class Wrong(Exception):
    pass


def victim(run, who, rng):
    if who == "rank":
        ranks = run.living_ranks()
        return rng.choice(sorted(ranks.values())) if len(ranks) == run.ranks else None
    return run.launcher() if who == "mpirun" else run.process.pid


def may_restart(run):
    """Whether the supervisor would repair one more fault: progress since its last restarts is a newer checkpoint."""
    last = [row["saved_step"] for row in run.events("restart")[-FRUITLESS:]]
    return len(last) < FRUITLESS or len(set(last)) > 1 or run.saved() > last[-1]


def suffer(run, rng, times):
    """One fault and what follows. Returns what was done, or None when the run was over before."""
    who, number, _, outcome = rng.choices(FAULTS, weights=[fault[2] for fault in FAULTS])[0]
    if outcome == "repaired" and not until(lambda: not run.running() or may_restart(run), LIMIT):
        raise Wrong(f"no checkpoint after {FRUITLESS} restarts")
    if not until(lambda: not run.running() or len(run.living_ranks()) == run.ranks, LIMIT):
        raise Wrong("the ranks did not come up")
    time.sleep(rng.uniform(0, 2.5))
    processes, before = run.descendants(), len(run.events("restart"))
    pid = victim(run, who, rng) if run.running() else None
    at = time.time()
    if pid is None or not send(pid, number):
        return None
    done = f"{signal.Signals(number).name} on {who}"
    if outcome == "repaired":
        if not until(lambda: not run.running() or len(run.events("restart")) > before, LIMIT):
            raise Wrong(f"{done}: no restart")
        if not run.running() and run.process.returncode != 0:
            raise Wrong(f"{done}: exit code {run.process.returncode}")
        if len(run.events("restart")) > before:
            times[done].append(run.events("restart")[-1]["noticed"] - at)
        return done
    code = run.wait(LIMIT)
    if code is None or not gone(processes):
        raise Wrong(f"{done}: {'it did not end' if code is None else 'processes are left'}")
    if outcome == "stopped" and code not in (0, 85):
        raise Wrong(f"{done}: exit code {code} instead of 85")
    if code != 0:
        run.start()
    return done


def one_round(folder, number, ranks, expected, rng, counts, times):
    run = Run(folder, f"round{number}", ranks, ["--restarts", "1000"]).start()
    try:
        for _ in range(8):
            done = suffer(run, rng, times)
            if done is None or not run.running():
                break
            counts[done] += 1
        code = run.wait(LIMIT)
        if code != 0:
            raise Wrong(f"exit code {code} at the end")
        if run.digest() != expected:
            raise Wrong("other weights than the undisturbed run")
        return None
    except Wrong as wrong:
        return f"round {number} on {ranks} ranks: {wrong}\n{run.tail()}"
    finally:
        run.end()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = seed_from(sys.argv, 2)
    passed = failed = 0
    counts, times = collections.Counter(), collections.defaultdict(list)
    with folder_for("campaign", JOB) as folder:
        expected = {ranks: Run(folder, f"straight{ranks}", ranks).finish().digest() for ranks in (2, 3, 4)}
        begin = time.monotonic()
        while passed + failed == 0 or time.monotonic() - begin < seconds:
            number = passed + failed
            rng = random.Random(f"{seed}-{number}")
            ranks = rng.choice((2, 2, 3, 4))
            wrong = one_round(folder, number, ranks, expected[ranks], rng, counts, times)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(wrong, flush=True)
    for done, count in sorted(counts.items()):
        noticed = f", noticed after {min(times[done]):.1f} to {max(times[done]):.1f} s" if times[done] else ""
        print(f"{count:4} x {done}{noticed}")
    total = sum(counts.values())
    print(f"{total} faults in {passed + failed} rounds, {(time.monotonic() - begin) / max(1, total):.1f} s each")
    return verdict("campaign", passed, failed, total)


if __name__ == "__main__":
    sys.exit(main())
