#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs oracles: run.py [NAME...], default every script beside this one; two at a time, each in a process of its own.

The large packages are imported once, before the processes part: importing torch, torchvision and timm takes seconds. Every
oracle decides on its own; all of them run. Its line `# rooms: ...` says for whom `make check` runs it.
"""
import os
import pathlib
import runpy
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
JOBS = int(os.environ.get("JOBS", 2))


def oracles():
    return sorted(path.stem for path in HERE.glob("*.py") if path.name != pathlib.Path(__file__).name)


def start(name, out):
    """A process that is the script, as far as it can see; what it says goes into the file."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    os.dup2(out.fileno(), 1)
    os.dup2(out.fileno(), 2)
    code = 1
    try:
        sys.argv = [str(HERE / f"{name}.py")]
        sys.path[0] = str(HERE)
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        if code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main():
    names = [pathlib.Path(name).stem for name in sys.argv[1:]] or oracles()
    if unknown := set(names) - set(oracles()):
        sys.exit(f"no oracle {', '.join(sorted(unknown))}; there are: {', '.join(oracles())}")
    started = time.monotonic()
    for package in ("numpy", "PIL.Image", "torch", "torchvision", "timm"):
        try:
            __import__(package)
        except ImportError:  # the oracle that needs it says so
            pass
    print(f"packages imported ({time.monotonic() - started:.1f} s)", flush=True)
    names.sort(key=lambda name: name != "zoo")  # the longest first
    running, failed = {}, 0
    while names or running:
        while names and len(running) < JOBS:
            name, out = names.pop(0), tempfile.TemporaryFile()
            running[start(name, out)] = (name, out, time.monotonic())
        child, status = os.wait()
        name, out, began = running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        out.seek(0)
        print(f"-- {name} ({time.monotonic() - began:.1f} s)\n{out.read().decode(errors='replace')}", end="")
        print("" if code == 0 else f"FAIL {name}: exit code {code}\n", end="", flush=True)
        failed += code != 0
    print(f"oracles: {failed} failed ({time.monotonic() - started:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
