#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the page of a workflow in headless Chromium: timeline, shares and Amdahl sum are drawn, hostile text stays text;
at desktop and phone width, light and dark.

workflow.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from report import HOSTILE, LOCKSTEP, ROOT, look


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if sys.argv[1:2] == ["--keep"] else None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([LOCKSTEP, "workflow", "report", ROOT / "examples/radar/workflow.json", "--to", folder / "radar", "--out", folder / "radar.html"],
                       check=True, stdout=subprocess.DEVNULL)
        dom = look(folder / "radar.html", keep, "radar", ["0 of 4 stages done", "41 h", "58.5 %", "45.65 %", "71.02 %", "70.76 %", "41.5 %", "Speed up next", "hatched"])
        assert dom.tags["svg"] == 1 and dom.tags["pattern"] == 4, dom.tags
        stages = {"one": {"command": ["sh", "-c", "sleep .1; echo 1 > {output}"], "outputs": ["a"]},
                  "left": {"command": ["cp", "{input}", "{output}"], "inputs": ["a"], "outputs": ["b"]},
                  "right": {"command": ["cp", "a", "{output}", HOSTILE.replace("{", "")], "inputs": ["a"], "outputs": ["c"]},
                  "unknown": {"command": ["true"], "inputs": ["b", "c"]}}
        (folder / "w.json").write_text(json.dumps({"name": "w", "stages": stages}))
        done = subprocess.run([LOCKSTEP, "workflow", "run", folder / "w.json", "--here"], capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        dom = look(folder / "w.workflow/report.html", keep, "measured", ["2 of 4 stages done", "2 measured", "time not known", "it failed", "without right, unknown"])
        assert dom.tags["svg"] == 1, dom.tags
    print("pages/workflow: expected and measured workflows are drawn")


if __name__ == "__main__":
    main()
