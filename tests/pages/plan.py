#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens `lockstep plan --report` pages in headless Chromium: the charts are drawn, nothing fails, hostile text stays text.

plan.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from report import LOCKSTEP, ROOT, Browser, chromium, open_page, reach_chart, told

HOSTILE = "<img src=x onerror=\"document.title='pwned'\"> @[data]"


def plan(folder, *words, job="resnet50.json", code=0):
    page, document = folder / "plan.html", folder / "plan.json"
    done = subprocess.run([LOCKSTEP, "plan", ROOT / "examples" / job, "--report", page, "--json", document, *words],
                          stdout=subprocess.DEVNULL, cwd=folder)
    assert done.returncode == code, done.returncode
    return page, json.loads(document.read_text())


def check_few(folder):
    machine = folder / f"{HOSTILE.replace('/', '')}.json"
    machine.write_text(json.dumps({"name": "mine", "gpu": "rtx3090", "gpus_per_node": 2,
                                   "prices": {"kwh": 0.3, "currency": "GBP"}}))
    page, document = plan(folder, "--on", f"h200,a100-80,k40,{machine.name}", "--gpus", "1,2")
    dom = open_page(page)
    open_page(page, width=390)
    check_keyboard(page)
    assert dom.classes.get("layer", 0) >= 4, dom.classes  # weights, gradients, optimizer, activations
    assert dom.classes.get("peak", 0) == 1 and dom.classes.get("part", 0) >= 5, dom.classes
    assert dom.classes.get("machine", 0) == len(document["options"]), dom.classes
    assert dom.classes.get("option", 0) == len(document["options"]), dom.classes
    for wanted in (machine.name, "no current CUDA drives it (last: 11.8)", "Machines compared", "Memory alive over one step",
                   "SkyPilot catalogue", "does not fit", "GBP", document["job_sha256"]):
        assert dom.shows(wanted), wanted
    source = page.read_text()
    assert "http://" not in source.replace("http://www.w3.org/2000/svg", "") and "https://" not in source
    assert HOSTILE not in source.replace("\\\"", "\"")
    print(f"plan.py: {len(document['options'])} options, {dom.classes['layer']} layers, {len(source) // 1024} KiB")


def check_keyboard(page):
    """The memory at each moment of the step, without a pointer."""
    with Browser() as browser:
        browser.open(page.as_uri(), drawn="document.readyState === 'complete'")
        name = reach_chart(browser)
        assert name == "memory over the step: arrow keys tell its values", name
        seen = []
        for key in ("Home", "PageDown", "PageDown", "End", "Escape"):
            browser.press(key)
            seen.append(told(browser))
        begin, *within, end, none = seen
        assert len(begin) >= 3 and len({all_of_it for all_of_it, *_ in (begin, *within)}) == 3 and end and none == [], seen
        assert not browser.errors, browser.errors
    print("plan.py: the memory of a step by the keyboard")


def check_all(folder):
    page, document = plan(folder, "--on", "all", "--no-search")
    dom = open_page(page)
    assert dom.classes.get("machine", 0) == len(document["options"]) > 30, dom.classes
    print(f"plan.py: all {len(document['options'])} GPUs: drawn")


def check_nowhere(folder):
    page, _ = plan(folder, "--on", "gtx1060", "--no-search", job="vit_giant.json", code=3)
    dom = open_page(page)
    assert dom.shows("fits nowhere of these"), "the pill"
    print("plan.py: a plan that fits nowhere: drawn")


def check_advice(folder):
    """A table of many columns is whole in a window of 1,100 pixels; on paper it is printed smaller."""
    page = folder / "kitti.html"
    subprocess.run([LOCKSTEP, "plan", "--advise", "table", ROOT / "examples/documents/kitti/table.json", "--report", page],
                   stdout=subprocess.DEVNULL, check=True)
    measuring = ("<script>document.title = JSON.stringify([...document.querySelectorAll('table')].map("
                 "t => [t.rows[0].cells.length, t.scrollWidth, t.parentElement.clientWidth]))</script></body>")
    page.write_text(page.read_text().replace("</body>", measuring))
    dom = chromium("--window-size=1100,900", "--dump-dom", page.as_uri())
    tables = json.loads(re.search(r"<title>(.*?)</title>", dom)[1])
    assert max(columns for columns, _, _ in tables) >= 12, tables
    for columns, wide, room in tables:
        assert wide <= room, (columns, wide, room)
    print(f"plan.py: {len(tables)} tables of an advice, up to {max(tables)[0]} columns: none is cut off at 1,100 pixels")


def screenshots(page, keep):
    keep.mkdir(parents=True, exist_ok=True)
    for width, height in ((1280, 4200), (390, 7000)):
        for scheme, flag in (("light", 1), ("dark", 0)):
            chromium(f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={flag}",
                     f"--screenshot={keep / f'plan-{width}-{scheme}.png'}", page.as_uri())


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        check_few(folder)
        if len(sys.argv) == 3 and sys.argv[1] == "--keep":
            keep = pathlib.Path(sys.argv[2]).resolve()
            page, _ = plan(folder, "--on", "k80,v100-32,rtx3090,a6000,a100-40,a100-80,h100,h200,minotauro", "--gpus", "1,4")
            screenshots(page, keep)
        check_all(folder)
        check_nowhere(folder)
        check_advice(folder)


if __name__ == "__main__":
    main()
