#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a training, their launcher and their supervisor listen: listening.py JOB RUN.

Starts `lockstep train JOB --run RUN --ranks 2`, reads the sockets of all its processes once the run has begun, until launcher
and ranks are among those that listen; stops it.
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
EXPECTED = {"mpirun", "lockstep"}
PATIENCE = 120  # seconds, against a hang


def there(look, path, otherwise):
    """What a look below /proc gives; processes end and files are closed (heartbeats come and go) while it is looked at."""
    try:
        return look(path)
    except OSError:
        return otherwise


def family(pid):
    """The process and all below it."""
    pids = [pid]
    for task in there(os.listdir, f"/proc/{pid}/task", []):
        for child in text_of(f"/proc/{pid}/task/{task}/children").split():
            pids += family(int(child))
    return pids


def text_of(path):
    return there(lambda name: pathlib.Path(name).read_text(), path, "")


def sockets(pid):
    for name in there(os.listdir, f"/proc/{pid}/fd", []):
        target = there(os.readlink, f"/proc/{pid}/fd/{name}", "")
        if target.startswith("socket:["):
            yield target[len("socket:["):-1]


def listening(pid):
    """(name of the program, address) of each socket on which the process listens."""
    own = set(sockets(pid))
    name = text_of(f"/proc/{pid}/comm").strip()
    for table in ("tcp", "tcp6"):
        for line in text_of(f"/proc/{pid}/net/{table}").splitlines()[1:]:
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
    found, start = set(), time.monotonic()
    while training.poll() is None and not EXPECTED <= {name for name, _ in found} and time.monotonic() - start < PATIENCE:
        found |= {row for pid in family(training.pid) for row in listening(pid)}
    training.send_signal(signal.SIGTERM)
    said = training.communicate()[1]
    for name, address in sorted(found):
        print(name, address)
    good = EXPECTED <= {name for name, _ in found} and all(address in LOOPBACK for _, address in found)
    print("all on the loopback interface" if good else f"NOT all on the loopback interface, or nothing seen\n{said}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
