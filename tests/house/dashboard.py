#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""optuna-dashboard opens a study of `lockstep tune` while it runs: dashboard.py, with `scripts/deps.sh dashboard`.

A study of a program that takes its time; beside it the dashboard, which must show the study by name, its page, and more
trials as they come, all of them with the values that Lockstep wrote.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin" / "lockstep"
DASHBOARD = ROOT / ".deps/dashboard/bin/optuna-dashboard"
PATIENCE = 120  # seconds, against a hang


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what):
    """The first answer that is one."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE:
        try:
            if (answer := what()) is not None:
                return answer
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.1)
    sys.exit(f"dashboard.py: nothing came within {PATIENCE} s")


def main():
    if not DASHBOARD.exists():
        sys.exit("dashboard.py: optuna-dashboard is missing: scripts/deps.sh dashboard")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        study = {"name": "watched", "space": {"x": {"range": [-5, 5]}, "o": {"choice": ["a", "b"]}}, "trials": 100000}
        (folder / "study.json").write_text(json.dumps(study))
        tune = subprocess.Popen([LOCKSTEP, "tune", "study.json", "--workers", "1", "--here", "--", "sh", "-c", "sleep 0.05; echo $0", "{x}", "{o}"],
                                cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = folder / "studies/watched/study.log"
        until(lambda: True if log.exists() and '"state":1' in log.read_text() else None)
        port = free_port()
        shown = subprocess.Popen([DASHBOARD, "--host", "127.0.0.1", "--port", str(port), log], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def ask(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                    return answer.read()

            def trials():
                found = json.loads(ask("/api/studies/0?after=0"))["trials"]
                return [one for one in found if one["state"] == "Complete"] or None

            listed = until(lambda: json.loads(ask("/api/studies"))["study_summaries"] or None)
            assert [one["study_name"] for one in listed] == ["watched"], listed
            assert b"<html" in ask("/dashboard/studies/0").lower(), "no page"
            first = until(trials)
            more = until(lambda: later if len(later := trials()) > len(first) + 5 else None)
            assert tune.poll() is None, "the study was over before it was looked at"
        finally:
            shown.terminate()
            shown.wait()
            tune.terminate()
            assert tune.wait(PATIENCE) == 85, "a study that is stopped asks to be gone on with"
        values = {}
        for line in log.read_text().splitlines():
            record = json.loads(line)
            if record["op_code"] == 6 and record["state"] == 1:
                values[record["trial_id"]] = record["values"]
        assert all(one["values"] == values[one["trial_id"]] for one in more), "other values"
        print(f"dashboard.py: the study as it runs, {len(first)} then {len(more)} complete trials, values as written")


main()
