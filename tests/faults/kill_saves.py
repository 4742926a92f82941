#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends or fails a training run at every call by which a save changes the disk: kill_saves.py [WORKERS]

disk_shim.c, preloaded, lets the N-th such call go wrong: SIGKILL before it, SIGKILL in the middle of it or right behind
it, ENOSPC or EIO once or for good. For every call of the second save of a run (which also removes an older checkpoint):
a killed run goes on by the same command, a failed one trains to its end or says that it could not save; the weights must
be those of the run that nobody disturbed, to the bit, no good checkpoint may be lost, and no sample taken twice. Where
strace is installed it tells first whether the shim sees every such call. Cases run side by side, one for each core
(or WORKERS): most of a case is the start of a process.
"""
import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

import check_history
from supervised import LOCKSTEP, Run, build_shim, folder_for, verdict

JOB = {
    "name": "saved",
    "data": {"train": "synthetic", "samples": 32, "image_size": 8, "threads": 1},
    "model": {"name": "mlp", "classes": 3},
    "training": {"global_batch": 8, "epochs": 3, "optimizer": {"name": "sgd", "lr": 0.01}, "threads": 1},
    "checkpoint": {"every_epochs": 1, "keep": 1},
}
KINDS = ("kill", "torn", "enospc", "eio", "enospc-on", "eio-on")
TRACED = ("open,openat,creat,write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,truncate,ftruncate,fallocate,"
          "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,copy_file_range,sendfile")


def train(folder, run, shim=None, before=(), **variables):
    environment = dict(os.environ, **variables)
    if shim:
        environment["LD_PRELOAD"] = str(shim)
    words = [*before, LOCKSTEP, "train", "job.json", "--run", run, "--history"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def write_job(folder, epochs):
    (folder / "job.json").write_text(json.dumps(JOB | {"training": JOB["training"] | {"epochs": epochs}}))


def calls_by_save(folder, shim):
    """The names of the calls made by the end of the first and of the second save of an undisturbed run."""
    calls = []
    for epochs in (1, 2):
        count = folder / f"count{epochs}"
        write_job(folder, epochs)
        done = train(folder, f"counted{epochs}", shim, SHIM_COUNT=str(count))
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        calls.append(count.read_text().split())
    return calls


def whole_lines(trace):
    """strace's lines, with those put together that the call of another thread has cut into two: where, is luck."""
    begun, lines = {}, []
    for line in trace.splitlines():
        pid, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[pid] = line.removesuffix("<unfinished ...>")
        elif "resumed>" in rest and pid in begun:
            lines.append(begun.pop(pid) + rest.partition("resumed>")[2])
        else:
            lines.append(line)
    return lines + list(begun.values())


def traced_calls(folder):
    """How many calls change something below checkpoints/ in two epochs, as the kernel sees them; None: cannot be told."""
    if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode:
        return None
    trace = folder / "trace"
    write_job(folder, 2)
    done = train(folder, "traced", before=("strace", "-f", "-qq", "-y", "-s", "0", "-e", f"trace={TRACED}", "-o", str(trace)))
    if done.returncode != 0:
        sys.exit("under strace: " + done.stdout + done.stderr)
    lines = [line for line in whole_lines(trace.read_text()) if "/checkpoints" in line]
    # remove(3) of a folder is one call of the program: an unlink that is refused, then a rmdir.
    harmless = re.compile(r" open(at)?\((?!.*O_(CREAT|TRUNC))| = -1 EISDIR")
    return sum(not harmless.search(line) for line in lines)


def one_fault(folder, shim, run, how, at, expected):
    """Returns what went wrong, as a text; empty: nothing."""
    first = train(folder, run, shim, SHIM_HOW=how, SHIM_AT=str(at))
    if how in ("kill", "torn") and first.returncode != -9:
        return f"exit code {first.returncode} instead of a kill\n{first.stderr}"
    if how in ("enospc", "eio") and first.returncode != 0:
        return f"training did not go on: {first.stderr}"
    if how.endswith("-on") and (first.returncode != 3 or "machine error" not in first.stderr):
        return f"exit code {first.returncode}, not a machine error: {first.stderr}"
    if first.returncode != 0:
        again = train(folder, run)
        if again.returncode != 0 or "passed over" in again.stderr:
            return f"did not go on: {again.stdout}{again.stderr}"
        if "going on after step" not in again.stderr:
            return "the first checkpoint is lost"
    if Run(folder, run, 1).digest() != expected:
        return "other weights"
    wrong, _ = check_history.check(folder / run, folder / "straight")
    if not wrong:
        shutil.rmtree(folder / run)
    return "; ".join(wrong)


def main():
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else len(os.sched_getaffinity(0))
    passed = failed = 0
    with folder_for("saves") as folder:
        shim = build_shim(folder)
        first, second = calls_by_save(folder, shim)
        traced = traced_calls(folder)
        print("strace cannot be used here: nobody checks the shim" if traced is None else
              f"strace sees {traced} calls that change a checkpoint, the shim {len(second)}")
        if traced not in (None, len(second)):
            failed += 1
        write_job(folder, JOB["training"]["epochs"])
        expected = Run(folder, "straight", 1, ["--history"]).finish().digest()
        cases = [(how, at) for at in range(len(first), len(second)) for how in KINDS]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            results = pool.map(lambda case: one_fault(folder, shim, "{}{}".format(*case), *case, expected), cases)
            for (how, at), wrong in zip(cases, results):
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print(f"{how} at call {at}, {second[at]}: {wrong}", flush=True)
    print(f"{len(second) - len(first)} calls in a save, each {len(KINDS)} ways, in {time.monotonic() - begin:.0f} s: "
          + ", ".join(f"{count} {name}" for name, count in sorted(collections.Counter(second[len(first):]).items())))
    return verdict("kill_saves", passed, failed, len(cases))


if __name__ == "__main__":
    sys.exit(main())
