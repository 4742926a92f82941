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
RECOVERY = 30
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


def stop_thread(tid):
    """Stops one thread of a process and leaves the others alone, until this program ends."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        if ptrace(request, tid, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace: " + os.strerror(ctypes.get_errno()))


def inject(run, fault):
    """Returns the rank that suffers; None for the launcher."""
    if fault == "mpirun killed":
        send(run.launcher(), signal.SIGKILL)
        return None
    pid = until(lambda: run.living_ranks().get(1), 5)
    if fault == "hung":
        stop_thread(pid)
    else:
        send(pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
    return 1


def one(folder, fault):
    """A row of figures, or a text that says what went wrong."""
    run = Run(folder, fault.replace(" ", "-"), 2).start()
    try:
        if not until(lambda: run.saved() > 0 and len(run.living_ranks()) == 2, 120):
            return "did not begin\n" + run.tail()
        processes = run.descendants()
        time.sleep(2.5)  # some steps beyond the checkpoint, known to the heartbeats
        rank, at = inject(run, fault), time.time()
        restart = until(lambda: run.events("restart"), 120)
        if not restart:
            return "no restart\n" + run.tail()
        restart = restart[0]
        first = until(lambda: [row for row in run.events("step", "save") if row["t"] > restart["t"]], 60)
        if not first:
            return "nothing trained after the restart\n" + run.tail()
        row = {"fault": fault, "noticed_seconds": restart["noticed"] - at, "recovered_seconds": first[0]["t"] - restart["noticed"],
               "why": restart["why"], "words": restart["what"]}
        if not gone(processes, 5):
            return "processes of the old ranks are left"
        if rank is not None and (restart["rank"] != rank or restart["host"] != socket.gethostname() or restart["step"] <= 0):
            return f"named wrongly: {restart}"
        send(run.process.pid, signal.SIGTERM)
        return row if run.wait(60) == 85 else f"SIGTERM did not end it with 85\n{run.tail()}"
    finally:
        run.end()


def main():
    rows, failed = [], 0
    with folder_for("detect", JOB) as folder:
        for fault, limit in LIMITS.items():
            row = one(folder, fault)
            if isinstance(row, str):
                failed += 1
                print(f"FAIL {fault}: {row}")
                continue
            good = row["noticed_seconds"] <= limit and row["recovered_seconds"] <= RECOVERY
            failed += not good
            rows.append(row)
            print(f"{'ok  ' if good else 'FAIL'} {fault}: noticed after {row['noticed_seconds']:.1f} s (at most {limit}), first new step "
                  f"{row['recovered_seconds']:.1f} s later (at most {RECOVERY})\n     {row['words']}", flush=True)
    if len(sys.argv) > 1:
        table = [{"what": f"fault noticed: {row['fault']}", "model": "smallcnn", "batch": 16, "precision": "fp32", "ranks": 2,
                  "noticed_seconds": round(row["noticed_seconds"], 2), "recovered_seconds": round(row["recovered_seconds"], 2),
                  "limit_seconds": LIMITS[row["fault"]], "peer": "none measured",
                  "command": "python3 tests/faults/detect.py", "commit": commit(), "machine": machine()} for row in rows]
        pathlib.Path(sys.argv[1]).write_text(json.dumps(table, indent=1) + "\n")
    return verdict("detect", len(LIMITS) - failed, failed, len(LIMITS))


if __name__ == "__main__":
    sys.exit(main())
