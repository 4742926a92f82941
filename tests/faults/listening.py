#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a training, their launcher and their supervisor listen: listening.py JOB RUN.

Starts `lockstep train JOB --run RUN --ranks 2`, reads the sockets of all its processes once the run has begun, stops it.
Prints every address; exit code 1 when one is not of the loopback interface, or there is none: then nothing was seen.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1, as the kernel writes them
LISTENS = "0A"


def family(pid):
    """The process and all below it."""
    pids = [pid]
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            pids += family(int(child))
    return pids


def sockets(pid):
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(descriptor) if descriptor.is_symlink() else ""
        if target.startswith("socket:["):
            yield target[len("socket:["):-1]


def listening(pid):
    """(name of the program, address) of each socket on which the process listens."""
    own = set(sockets(pid))
    name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    for table in ("tcp", "tcp6"):
        path = pathlib.Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            _, local, _, state, *rest = line.split()
            if state == LISTENS and rest[5] in own:
                yield name, local.split(":")[0]


def main():
    job, run = sys.argv[1:]
    training = subprocess.Popen(["lockstep", "train", job, "--run", run, "--ranks", "2"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
    journal = pathlib.Path(run) / "journal.jsonl"
    while training.poll() is None and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.05)
    found = [row for pid in family(training.pid) for row in listening(pid)] if training.poll() is None else []
    training.send_signal(signal.SIGTERM)
    said = training.communicate()[1]
    for name, address in found:
        print(name, address)
    seen = {name for name, _ in found}
    good = {"mpirun", "lockstep"} <= seen and all(address in LOOPBACK for _, address in found)
    print("all on the loopback interface" if good else f"NOT all on the loopback interface, or nothing seen\n{said}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
