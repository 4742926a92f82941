#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A workflow killed at any moment, and started again until it is done: kill_workflow.py [SECONDS], default 40.

Each round makes a workflow with an input of its own (a copy, two stages at the same time, one that goes on where it was, one
that reads them all), kills `workflow run` with SIGKILL at random moments, and looks at the folder after each kill: every
output is absent, the old one or the new one as a whole, and a folder stays somewhere until the new one is in its place. In the
end everything is there with the right content, nothing half-made is left, no process lives, and stages that were done were not
run again.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from supervised import LOCKSTEP, seed_from

LINES = 400
# Slow on purpose, in many small writes, by a child of the shell: what a kill leaves behind would be seen.
SLOW = "echo {stage} >> ran; (while read -r line; do echo \"$line {stage}\"; sleep 0.0005; done < {source}) > {{output}}"
GOES_ON = ("echo tail >> ran; touch state; for i in $(seq $(($(wc -l < state) + 1)) 20); do echo $i >> state; sleep 0.01; done;"
           " test $(wc -l < state) = 20 && cat raw state > tail.new && mv tail.new tail")


def workflow():
    slow = lambda stage, source: ["sh", "-c", SLOW.format(stage=stage, source=source)]
    return {"name": "w", "stages": {
        "copy": {"copy": ["source"], "outputs": ["raw"]},
        "left": {"command": slow("left", "raw"), "inputs": ["raw"], "outputs": ["left"]},
        "right": {"command": slow("right", "raw"), "inputs": ["raw"], "outputs": ["deep/right"]},
        "tail": {"command": ["sh", "-c", GOES_ON], "inputs": ["raw"], "outputs": ["tail"], "restartable": True, "state": ["state"]},
        "join": {"command": ["sh", "-c", "echo join >> ran; mkdir {output} && cat left deep/right tail > {output}/all"],
                 "inputs": ["left", "deep/right", "tail"], "outputs": ["joined"]}}}


def expected(source):
    lines = source.splitlines()
    left = "".join(f"{line} left\n" for line in lines)
    right = "".join(f"{line} right\n" for line in lines)
    tail = source + "".join(f"{i}\n" for i in range(1, 21))
    return {"raw": source, "left": left, "deep/right": right, "tail": tail, "joined/all": left + right + tail}


def start(folder):
    return subprocess.Popen([LOCKSTEP, "workflow", "run", folder / "w.json", "--here"], stdout=subprocess.DEVNULL,
                            stderr=open(folder / "errors", "ab"))


def check_whole(folder, versions):
    """Every output is one of its versions as a whole, or absent."""
    for name in versions[0]:
        path = folder / name
        if not path.exists():
            continue
        content = path.read_text()
        assert any(content == version[name] for version in versions), f"{name} is half-written: {len(content)} bytes"
    if len(versions) > 1:
        kept = [path.read_text() for path in [folder / "joined/all", *folder.glob("joined.old-*/all")] if path.exists()]
        assert any(content == version["joined/all"] for content in kept for version in versions), "the folder joined is lost"


def leftovers(folder):
    made = [str(path) for path in folder.rglob("*") if "partial-" in path.name or ".old-" in path.name]
    alive = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder) and int(entry.name) != os.getpid():
                alive.append(entry.name)
        except OSError:
            continue
    return made, alive


def one_round(folder, chance):
    versions, kills = [], 0
    for version in range(2):
        source = "".join(f"{version} {i} {chance.random()}\n" for i in range(LINES))
        (folder / "source").write_text(source)
        (folder / "w.json").write_text(json.dumps(workflow()))
        versions.append(expected(source))
        (folder / "ran").write_text("")
        for attempt in range(1000):
            running = start(folder)
            patience = chance.uniform(0.01, 0.9) if attempt < 12 else 60
            try:
                code = running.wait(timeout=patience)
                assert code == 0, f"exit {code}: {(folder / 'errors').read_text()[-2000:]}"
                break
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
                running.wait()
                kills += 1
                check_whole(folder, versions)
        for name, content in versions[-1].items():
            assert (folder / name).read_text() == content, f"{name} is wrong"
        made, alive = leftovers(folder)
        assert not made and not alive, (made, alive)
        # A stage that is done is not run again: after its record there is no further line of it.
        again = subprocess.run([LOCKSTEP, "workflow", "run", folder / "w.json", "--here", "--json", "-"],
                               capture_output=True, text=True)
        outcomes = [stage["outcome"] for stage in json.loads(again.stdout)["stages"]]
        assert outcomes == ["up to date"] * 5, outcomes
        ended = {}
        for line in (folder / "w.workflow" / "journal.jsonl").read_text().splitlines():
            event = json.loads(line) if line.endswith("}") else {}
            if event.get("event") == "end" and event.get("outcome") == "done":
                ended[event["stage"]] = ended.get(event["stage"], 0) + 1
        # Killed behind the record and before the journal's line: at most once a version.
        assert all(count <= version + 1 for count in ended.values()), f"done more than once: {ended}"
    return kills


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 40
    chance, kills, rounds = random.Random(seed_from(sys.argv, 2)), 0, 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as name:
            kills += one_round(pathlib.Path(name).resolve(), chance)
        rounds += 1
    print(f"kill_workflow: {rounds} workflows changed and run twice, {kills} kills: nothing half-written, nothing lost")
    print(f"faults injected: {kills}")
    if kills == 0:
        sys.exit("no kill fell into a run")


if __name__ == "__main__":
    main()
