#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the pages of `lockstep tune` in headless Chromium: everything is drawn, nothing fails, hostile text stays text; at desktop
and phone width, light and dark.

tune.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from report import HOSTILE, LOCKSTEP, look


def write_study(folder, count=60):
    """A study as Optuna's journal has it: complete, pruned, infeasible and failed trials; made up."""
    rng, lines = random.Random(1), [{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [2]}]
    wide = '{"name":"FloatDistribution","attributes":{"step":null,"low":0.0001,"high":1.0,"log":true}}'
    choice = json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", HOSTILE]}})
    for number in range(count):
        lr, name = 10 ** rng.uniform(-4, 0), rng.randrange(2)
        final = 0.9 - 0.1 * abs(1.5 + __import__("math").log10(lr)) + 0.02 * name + rng.gauss(0, 0.01)
        curve = {str(step): final * (1 - 0.7**step) for step in range(1, 9)}
        state = 2 if number % 3 == 1 else 3 if number % 20 == 5 else 1
        record = {"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": None, "state": state, "value": final if state == 1 else None,
                  "params": {"lr": lr, "o": name}, "distributions": {"lr": wide, "o": choice}, "user_attrs": {"node_hours": rng.uniform(0.1, 0.4)},
                  "system_attrs": {"constraints:memory": 1.0} if number == 4 else {}, "intermediate_values": dict(list(curve.items())[: 8 if state == 1 else 2])}
        if state == 3:
            record["user_attrs"]["error"] = HOSTILE
        lines.append(record)
    folder.mkdir()
    (folder / "study.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    study = {"name": "s", "space": {"lr": {"log": [1e-4, 1]}, "o": {"choice": ["sgd", HOSTILE]}}, "direction": "maximize", "scheduler": "asha"}
    (folder / "study.json").write_text(json.dumps(study))


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if sys.argv[1:2] == ["--keep"] else None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_study(folder / "s")
        subprocess.run([LOCKSTEP, "tune", folder / "s", "--report"], check=True, stdout=subprocess.DEVNULL)
        dom = look(folder / "s" / "report.html", keep, "tune", ["Best so far", "Importance", "Parallel coordinates", "Learning curves", "The next trial", "Could not fit"])
        assert dom.tags["svg"] >= 3 and dom.tags["path"] > 60, dom.tags
        write_study(folder / "many", 4500)  # the page draws the newest 2,000, and counts all: 1, 4, 7, ... are pruned, 5 failed
        subprocess.run([LOCKSTEP, "tune", folder / "many", "--report"], check=True, stdout=subprocess.DEVNULL)
        look(folder / "many" / "report.html", None, "many", ["Complete2,850of", "Pruned1,499stopped", "Failed150", "from trial 2,500 on"])
        study = {"name": "p", "space": {"a": {"range": [0, 1]}, "b": {"log": [0.1, 10]}, "c": {"range": [0, 1]}}, "partition": {"starts": 64, "chains": 2, "points": 600}}
        (folder / "p.json").write_text(json.dumps(study))
        program = "while read a b c; do case $a in 0.[0-4]*) echo calm;; *) case $c in 0.[89]*) echo rare;; *) echo 'wild <b>';; esac;; esac; done"
        subprocess.run([LOCKSTEP, "tune", "--partition", folder / "p.json", "--to", folder / "p", "--here", "--", "sh", "-c", program], check=True, stdout=subprocess.DEVNULL)
        dom = look(folder / "p" / "partition.html", keep, "partition", ["3 regions", "wild <b>", "Pairs of parameters", "What may have been missed"])
        assert dom.tags["svg"] >= 3 and dom.classes["point"] > 300, dom.tags
    print("pages/tune: study and partition are drawn")


if __name__ == "__main__":
    main()
