#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank that the kernel kills for want of memory is named as such, with what it held and what to change.

Two ranks of a network that needs more than the memory control group they start in allows. Without the right to make such
a group (root, or one that was delegated) there is nothing to test: said, and counted as skipped."""
import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile
import time

from supervised import Run, gone, until

LIMIT = 1 << 30
JOB = {
    "name": "large",
    "data": {"train": "synthetic", "samples": 16, "image_size": 224, "threads": 1},
    "model": {"name": "linear", "classes": 4000},  # 602 million weights: 2.4 GB, and as much for their gradients
    "training": {"global_batch": 4, "epochs": 1, "threads": 1},
}


def own_group():
    """The folder of this process's memory control group and the name of its limit; None: not known."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/memory") / path.lstrip("/"), "memory.limit_in_bytes"
        whole = pathlib.Path("/sys/fs/cgroup") / path.lstrip("/")
        if not controllers and "memory" in words_of(whole / "cgroup.subtree_control"):
            return whole, "memory.max"
    return None


def words_of(path):
    try:
        return path.read_text().split()
    except OSError:
        return []


@contextlib.contextmanager
def small_group():
    """A group of its own below this process's, with the limit; None where none can be made."""
    found = own_group()
    folder = None
    if found:
        folder = found[0] / f"lockstep-test-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / found[1]).write_text(str(LIMIT))
            with contextlib.suppress(OSError):  # no such file: there is no swap to flee into
                swap, most = ("memory.swap.max", 0) if found[1] == "memory.max" else ("memory.memsw.limit_in_bytes", LIMIT)
                (folder / swap).write_text(str(most))
        except OSError as error:
            print(f"{folder}: {error.strerror}")
            with contextlib.suppress(OSError):
                folder.rmdir()
            folder = None
    try:
        yield folder
    finally:
        for _ in range(50 if folder else 0):
            with contextlib.suppress(OSError):
                folder.rmdir()  # refused while a process of it has not ended
                break
            time.sleep(0.1)


def check(folder, group):
    """What went wrong; None: nothing."""
    (folder / "job.json").write_text(json.dumps(JOB))
    run = Run(folder, "large", 2, ["--restarts", "0"])
    run.words = ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh", *run.words]
    run.start()
    try:
        ranks = until(lambda: run.descendants(), 60)
        code = run.wait(300)
        said = run.log.read_text(errors="replace")
        if code != 3:
            return f"exit code {code}\n{run.tail()}"
        wanted = (r"machine error: rank [01] on \S+ was killed by the kernel for want of memory, after step 0, .*"
                  r"; it held [0-9.]+ [MG]i?B at most.*; no restart: --restarts allows 0")
        for regex in (wanted, r"fix: use fewer ranks on a host, a smaller training.global_batch, or training.recompute"):
            if not re.search(regex, said):
                return f"not said: {regex}\n{run.tail()}"
        return None if ranks and gone(ranks) else "processes are left"
    finally:
        run.end()


def main():
    with small_group() as group, tempfile.TemporaryDirectory(prefix="lockstep-memory-") as name:
        if not group:
            print("out of memory: 0 passed, 0 failed, 1 skipped: needs the right to make a memory control group")
            return 77
        wrong = check(pathlib.Path(name), group)
    print(f"{'FAIL' if wrong else 'ok  '} killed for want of memory{': ' + wrong if wrong else ''}")
    print(f"out of memory: {int(not wrong)} passed, {int(bool(wrong))} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
