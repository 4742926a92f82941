#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon faults are noticed and training goes on, with the supervisor's own defaults: detect.py [RESULTS.json]

Four faults, each on a run of two ranks: a rank killed (SIGKILL), stopped (SIGSTOP), its training thread alone stopped
(the process lives and its heartbeat goes on: a hang), mpirun killed. The message must name rank, host and step. With a file, the
figures are written there as rows for results/.
"""
import ctypes
import json
import os
import pathlib
import signal
import socket
import sys
import time

from supervised import Run, commit, folder_for, gone, machine, send, until, verdict

JOB = {
    "name": "detect",
    "data": {"train": "synthetic", "samples": 160, "image_size": 64},
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 16, "epochs": 100000, "optimizer": {"name": "sgd", "lr": 0.001}, "threads": 1},
    "checkpoint": {"every_epochs": 1},
}
LIMITS = {"killed": 5, "stopped": 60, "hung": 60, "mpirun killed": 5}
RECOVERY = 30  # or, where the first start already took more than a third of it, three times that
TRIES = 3  # a machine that stood still for some seconds is late once; a program that is late is so every time
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_CONT, WALL = 0x4206, 0x4207, 7, 0x40000000


def ptrace(request, tid):
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if call(request, tid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace: " + os.strerror(ctypes.get_errno()))


def hang(run, tid):
    """Stops one thread of a process and leaves the others alone, until this program ends; returns when. Not within a collective,
    in which all ranks would wait alike: a heartbeat that was begun after the stop tells, and the next moment may be better."""
    ptrace(PTRACE_SEIZE, tid)
    while True:
        ptrace(PTRACE_INTERRUPT, tid)
        os.waitpid(tid, WALL)
        at, count = time.time(), until(lambda: run.heartbeats().get(1), 300)["count"]
        told = until(lambda: [row for rank, row in run.heartbeats().items() if rank == 1 and row["count"] > count + 1], 10)
        if not told or "call" not in told[0]:
            return at
        ptrace(PTRACE_CONT, tid)
        time.sleep(0.1)


def inject(run, fault):
    """Returns the rank that suffers, None for the launcher, and when."""
    if fault == "mpirun killed":
        at = time.time()
        send(run.launcher(), signal.SIGKILL)
        return None, at
    pid = until(lambda: run.living_ranks().get(1), 60)
    if fault == "hung":
        return 1, hang(run, pid)
    at = time.time()
    send(pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
    return 1, at


def one(folder, name, fault):
    """A row of figures, or a text that says what went wrong."""
    begun = time.time()
    run = Run(folder, name, 2).start()
    try:
        if not until(lambda: run.saved() > 0 and len(run.living_ranks()) == 2, 300):
            return "did not begin\n" + run.tail()
        processes, saved = run.descendants(), run.saved()
        # Some steps beyond a checkpoint, known to the heartbeats.
        if not until(lambda: sum(heartbeat["step"] > saved for heartbeat in run.heartbeats().values()) == 2, 300):
            return "heartbeats tell of no step\n" + run.tail()
        start = run.events("step", "save")[0]["t"] - begun
        rank, at = inject(run, fault)
        restart = until(lambda: run.events("restart"), 300)
        if not restart:
            return "no restart\n" + run.tail()
        restart = restart[0]
        first = until(lambda: [row for row in run.events("step", "save") if row["t"] > restart["t"]], 300)
        if not first:
            return "nothing trained after the restart\n" + run.tail()
        row = {"fault": fault, "noticed_seconds": restart["noticed"] - at, "recovered_seconds": first[0]["t"] - restart["noticed"],
               "recovery_limit": max(RECOVERY, 3 * start), "why": restart["why"], "words": restart["what"]}
        if not gone(processes):
            return "processes of the old ranks are left"
        if rank is not None and (restart["rank"] != rank or restart["host"] != socket.gethostname() or restart["step"] <= 0):
            return f"named wrongly: {restart}"
        send(run.process.pid, signal.SIGTERM)
        return row if run.wait(300) == 85 else f"SIGTERM did not end it with 85\n{run.tail()}"
    finally:
        run.end()


def in_time(row):
    return row["noticed_seconds"] <= LIMITS[row["fault"]] and row["recovered_seconds"] <= row["recovery_limit"]


def tried(folder, fault):
    """The first row that is in time, or the last one, or what went wrong."""
    for number in range(TRIES):
        row = one(folder, f"{fault.replace(' ', '-')}-{number}", fault)
        if isinstance(row, str) or in_time(row):
            break
        print(f"     {fault}: noticed after {row['noticed_seconds']:.1f} s, first new step {row['recovered_seconds']:.1f} s later", flush=True)
    return row


def main():
    rows, failed = [], 0
    with folder_for("detect", JOB) as folder:
        for fault, limit in LIMITS.items():
            row = tried(folder, fault)
            if isinstance(row, str):
                failed += 1
                print(f"FAIL {fault}: {row}")
                continue
            good = in_time(row)
            failed += not good
            rows.append(row)
            print(f"{'ok  ' if good else 'FAIL'} {fault}: noticed after {row['noticed_seconds']:.1f} s (at most {limit}), first new step "
                  f"{row['recovered_seconds']:.1f} s later (at most {row['recovery_limit']:.0f})\n     {row['words']}", flush=True)
    if len(sys.argv) > 1:
        table = [{"what": f"fault noticed: {row['fault']}", "model": "smallcnn", "batch": 16, "precision": "fp32", "ranks": 2,
                  "noticed_seconds": round(row["noticed_seconds"], 2), "recovered_seconds": round(row["recovered_seconds"], 2),
                  "limit_seconds": LIMITS[row["fault"]], "peer": "none measured",
                  "command": "python3 tests/faults/detect.py", "commit": commit(), "machine": machine()} for row in rows]
        pathlib.Path(sys.argv[1]).write_text(json.dumps(table, indent=1) + "\n")
    return verdict("detect", len(LIMITS) - failed, failed, len(LIMITS))


if __name__ == "__main__":
    sys.exit(main())
