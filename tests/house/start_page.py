#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types docs/start.md through as a newcomer would: start_page.py, in an empty folder, lockstep on PATH.

Drawn shapes stand for the photographs, and weights of a network that was trained for one step for those that `get` would
download, which tests/scenarios/weights.txt tries with files at hand. The job is the one that the page shows; every command
of the page is run, those of its tables too, with its placeholders filled in. What the page says that a command prints, up
to the first figure, must be printed.
"""
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys

from front_page import ROOT, commands, complain, output_of, wrong

PAGE = ROOT / "docs/start.md"
PLACEHOLDERS = {"RUN": "runs/photos", "x.jpg": "new.jpg"}
TRIED_ELSEWHERE = {"lockstep get weights efficientnet_lite0": "tests/scenarios/weights.txt"}
ONE_STEP = {"name": "one", "data": {"train": "photos", "image_size": 32, "threads": 1}, "model": {"name": "efficientnet_lite0"},
            "training": {"global_batch": 4, "steps": 1, "optimizer": {"lr": 0.01}}}


def prepare(page):
    output_of("lockstep", "prep", "--synthesize", "shapes", "--count", "40", "--classes", "2", "--image-size", "64", "--to", "drawn")
    pathlib.Path("photos").mkdir()
    for kind, name in zip(sorted(pathlib.Path("drawn/train").iterdir()), ("cat", "dog")):
        kind.rename(f"photos/{name}")
    images = sorted(pathlib.Path("photos").rglob("*.jpg"))
    shutil.copy(images[0], "new.jpg")
    pathlib.Path("one.json").write_text(json.dumps(ONE_STEP))
    output_of("lockstep", "train", "one.json", "--run", "one")
    pathlib.Path("models").mkdir()
    shutil.copy("one/weights.safetensors", "models/efficientnet_lite0.safetensors")
    with open("list.csv", "w", newline="") as rows:
        writer = csv.writer(rows)
        writer.writerow(["image", "class", "age"])
        writer.writerows([str(path), path.parent.name, index] for index, path in enumerate(images))
    pathlib.Path("job.json").write_text(re.search(r'^    (\{ "name".*?\} \})$', page, re.M | re.S).group(1))


def promised(page, command):
    """The lines that the page shows below a command, each up to its first figure or dots."""
    found = re.search(rf"^    \$ {re.escape(command)}\n((?:    .+\n|\n(?=    ))*)", page, re.M)
    for line in found.group(1).splitlines() if found else []:
        words = re.split(r"\d|\.\.\.|-----| cat ", line.strip())[0].strip()
        if len(words) >= 4 and not line.startswith("    { "):
            yield re.sub(r"\s+", " ", words)


def type_in(page, command, number):
    words = [PLACEHOLDERS.get(word, word) for word in command.split()]
    if words[1] == "prep" and number > 0:  # the page's other ways to the same folder
        words[-1] += str(number)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{' '.join(words)}", flush=True)
    if done.returncode != 0:
        complain(f"exit {done.returncode}: {command}\n{done.stdout[-2000:]}")
    said = re.sub(r"\s+", " ", done.stdout)
    for line in promised(page, command):
        if line not in said:
            complain(f"{command} does not print '{line}'\n{done.stdout[-2000:]}")
    if words[1:2] == ["train"] and len(words) == 3:  # two runs to compare
        for name in ("a", "b"):
            pathlib.Path("runs", name).symlink_to("photos")


def main():
    page = PAGE.read_text()
    prepare(page)
    typed = list(dict.fromkeys(commands(page.replace("    $ ", "    "))))
    if len(typed) < 10:
        complain(f"the page has {len(typed)} commands: are they still found?")
    for number, command in enumerate(typed):
        if command in TRIED_ELSEWHERE:
            if "lockstep get weights" not in (ROOT / TRIED_ELSEWHERE[command]).read_text():
                complain(f"{TRIED_ELSEWHERE[command]} does not try '{command}'")
        else:
            type_in(page, command, number if typed.index(command) > 1 else 0)
    print(f"start page: {len(typed)} commands, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
