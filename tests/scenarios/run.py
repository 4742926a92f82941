#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs text scenarios: run.py [FILE...], default every *.txt beside this script; JOBS files at a time (default: 2).

A file is a list of blocks separated by blank lines:
    $ command          run by bash in a folder that is fresh for each file
    exit 2             expected exit code, 0 when absent
    ~ regex            must be found in standard output + standard error
    !~ regex           must not
A block whose command ends in a backslash goes on in the next line. `# skip-unless COMMAND` as a line of its own skips
the rest of the file, by name and counted, when COMMAND fails. Other lines that start with # are comments.
"""
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
TIMEOUT_SECONDS = 900  # for a hang, not for a slow machine


def parse(path):
    """Yields (line number, kind, payload) for each block or skip condition."""
    block, start = [], 0
    lines = path.read_text().splitlines() + [""]
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line.startswith("# skip-unless "):
            yield number, "skip-unless", line[len("# skip-unless "):]
        elif line.startswith("#"):
            continue
        elif line.strip():
            if not block:
                start = number
            while line.endswith("\\") and number < len(lines):
                line = line[:-1] + lines[number].strip()
                number += 1
            block.append(line)
        elif block:
            yield start, "block", block
            block = []


def run(command, folder, env):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace")


def check(block, folder, env):
    """Returns (what went wrong, output); nothing wrong is an empty list."""
    command, expected, wanted, unwanted = block[0], 0, [], []
    if not command.startswith("$ "):
        return [f"a block starts with '$ command', not '{command}'"], ""
    for line in block[1:]:
        if line.startswith("exit "):
            expected = int(line[5:])
        elif line.startswith("~ "):
            wanted.append(line[2:])
        elif line.startswith("!~ "):
            unwanted.append(line[3:])
        else:
            return [f"not understood: '{line}'"], ""
    try:
        code, output = run(command[2:], folder, env)
    except subprocess.TimeoutExpired:
        return [f"still running after {TIMEOUT_SECONDS} s"], ""
    wrong = [] if code == expected else [f"exit {code}, expected {expected}"]
    wrong += [f"not found: {regex}" for regex in wanted if not re.search(regex, output, re.M)]
    wrong += [f"found: {regex}" for regex in unwanted if re.search(regex, output, re.M)]
    return wrong, output


def run_file(path, env):
    """What a file has to say, and its counts: passed, failed, skipped."""
    started, said = time.monotonic(), []
    passed = failed = skipped = 0
    # What a command that was ended has left behind may still write: that decides nothing.
    with tempfile.TemporaryDirectory(prefix="lockstep-scenario-", ignore_cleanup_errors=True) as folder:
        skipping = None
        for number, kind, payload in parse(path):
            if kind == "skip-unless":
                skipping = payload if run(payload, folder, env)[0] != 0 else skipping
            elif skipping:
                skipped += 1
            else:
                wrong, output = check(payload, folder, env)
                failed += 1 if wrong else 0
                passed += 0 if wrong else 1
                if wrong:
                    said.append(f"FAIL {path.name}:{number}: {payload[0]}\n  " + "\n  ".join(wrong))
                    said.append("  output:\n    " + "\n    ".join(output.splitlines()[-40:]))
        if skipping:
            said.append(f"skip {path.name}: needs `{skipping}`")
    said.append(f"{'FAIL' if failed else 'ok  '} {path.name} ({time.monotonic() - started:.1f} s)")
    return "\n".join(said), (passed, failed, skipped)


def heed_signals():
    """Commands start with every signal as a terminal would give it, however this suite was started: nohup and a shell's `&`
    leave some ignored, and who ignores a signal hands that down. One with a handler is given to a program as new; this
    process goes on not heeding it."""
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
        if signal.getsignal(one) == signal.SIG_IGN:
            signal.signal(one, lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def main():
    heed_signals()
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("*.txt"))
    # The long ones first, so that none is left alone at the end: ranks and runs that are killed take the time.
    files.sort(key=lambda path: -len(re.findall(r"lockstep train|--ranks|kill ", path.read_text())))
    env = dict(os.environ, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}", ROOT=str(ROOT), LC_ALL="C.UTF-8",
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               LOCKSTEP_BUSY_CORES="0")  # what others do here must not decide the threads, and with them the bits
    totals = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", 2))) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_file, path, env) for path in files]):
            said, counts = done.result()
            print(said, flush=True)
            totals = [total + count for total, count in zip(totals, counts)]
    print(f"scenarios: {totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
