#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what README.md and the help texts tell a newcomer to type: front_page.py, in an empty folder, lockstep on PATH.

Every verb's help ends with an example; they run in the order of `lockstep --help`, which is the order of work, so that
each finds what those before it made. Then every command of README.md that was not among them. A command that would take
long gets further words that make it short; those that build or install are not run here but must stand in the test that does.
The jobs that it shows are read as any job is, alone and with the recipe that it names. Links and pictures of README.md are there, and it stays short.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_LINES = 120
MOST_PICTURE_BYTES = 150_000
SHORT = {"prep": ["--count", "200"], "train": ["--set", "training.epochs=1"], "bench": ["--rounds", "1", "--threads", "1"]}
MADE_BY = {  # commands that build or install -> the test that runs them, and the words with which it does
    "make quickstart": ("tests/house/quickstart.sh", "scripts/quickstart.sh"),  # what the target calls, its dependencies being there
    "make test": (".ci/run", "make test\n"),
    "make build PREFIX=$HOME/lockstep": ("tests/house/bare_build.sh", 'make --no-print-directory install BUILD="$work/build" PREFIX='),
    "scripts/deps.sh torch": ("scripts/test.sh", "scripts/deps.sh build test torch"),
    "make planner-page": ("scripts/test_all.py", "make planner-page build"),
    "pip install .": ("tests/python/wheel.py", '"scripts/wheel.sh", tree'),  # which lets pip build it
}

wrong = []


def complain(what):
    wrong.append(what)
    print(f"WRONG {what}", flush=True)


def output_of(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def examples():
    for verb in re.findall(r"^  (\w+) ", output_of("lockstep", "--help"), re.M):
        last = output_of("lockstep", verb, "--help").rstrip().splitlines()[-1]
        found = re.match(rf"(?:examples?:)? *(lockstep {verb}\b.*)$", last)
        if found:
            yield found.group(1)
        else:
            complain(f"lockstep {verb} --help ends with '{last}': no example")


def commands(page, also=""):
    """What stands in code and begins as a command does; comments behind it are none of it."""
    code = re.findall(r"^    (\S.*)$", page, re.M) + re.findall(r"`([^`\n]+)`", page)
    for line in code:
        line = re.sub(r"\s+#.*$", "", line)
        if re.match(rf"({also}lockstep|make|scripts/\S+) \S", line):
            yield line


def run(command):
    started = time.monotonic()
    words = shlex.split(command)
    done = subprocess.run(words + SHORT.get(words[1], []), capture_output=True, text=True)
    if done.returncode != 0:
        complain(f"exit {done.returncode}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"{time.monotonic() - started:5.1f} s  {command}", flush=True)


def check_page(page):
    if len(page.splitlines()) > MOST_LINES:
        complain(f"README.md has {len(page.splitlines())} lines, more than {MOST_LINES}")
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        if not target.startswith("http") and not (ROOT / target).exists():
            complain(f"README.md leads to {target}, which is not there")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    for name in pictures:
        if (ROOT / name).stat().st_size > MOST_PICTURE_BYTES:
            complain(f"{name} is larger than {MOST_PICTURE_BYTES} bytes")
    if len(pictures) < 2:
        complain("README.md shows no plan or no report")


def check_jobs(page):
    """What stands as JSON, and what the text calls a recipe: keys of a job."""
    jobs = re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S)
    recipes = re.findall(r'`("training": \{[^`]*\})`', page)
    if not jobs or not recipes:
        complain("README.md shows no job or no recipe")
    for number, job in enumerate(jobs):
        with_recipes = [job, *(job.rstrip().removesuffix("}") + f", {recipe}}}\n" for recipe in recipes)]
        for at, text in enumerate(with_recipes):
            name = f"readme_job_{number}_{at}.json"
            pathlib.Path(name).write_text(text)
            run(f"lockstep explain --check {name}")


def main():
    page = (ROOT / "README.md").read_text()
    check_page(page)
    check_jobs(page)
    os.symlink(ROOT / "examples", "examples")
    done = set()
    for command in [*examples(), *commands(page, also="pip|")]:
        if command in done:
            continue
        done.add(command)
        if command.startswith("lockstep"):
            run(command)
        elif command not in MADE_BY or MADE_BY[command][1] not in (ROOT / MADE_BY[command][0]).read_text():
            complain(f"no test runs the front page's '{command}'")
    print(f"front page: {len(done)} commands, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
