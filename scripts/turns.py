#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is in scripts/test_long.sh, whose box does not hold all of its parts at once.

  turns.py order NAME...         the parts in turn: what never passed first, then what passed longest ago
  turns.py passed NAME=SECONDS...   writes down that they passed at this commit, where nothing differs from it

results/test_long.json has the last pass of every part and is committed with the change that it was run for. A part that
goes first fits whenever it fits at all, so none waits for ever; tests/house/loop_test.py counts how long, and fails when
a part has not passed for as many commits as seven landings have, one that never passed since the commit that brought it.
"""
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "results/test_long.json"
LANDING = 50  # commits; landings are not marked in the history, and had 20 to 140
MOST_LANDINGS = 7


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commits():
    """A number, because a hash does not survive a rebase."""
    return int(git("rev-list", "--count", "HEAD"))


def read_record():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def in_turn(names, record, start=0):
    """Of equals another one goes first with each commit: also where nobody commits the record, none is always the last."""
    start %= max(len(names), 1)
    return sorted([*names[start:], *names[:start]], key=lambda name: record[name]["commits"] if name in record else -1)


def first_commit(*where):
    """Of those that `git log` finds, the number of the oldest; of none (it is not committed yet) the next one."""
    found = git("log", "--format=%H", *where).split()
    return int(git("rev-list", "--count", found[-1])) if found else commits() + 1


def appeared(name):
    """When the part got its row in scripts/test_long.sh; of those before the record, when that was begun."""
    return max(first_commit(f'-S"{name} ', "--", "scripts/test_long.sh"), first_commit("--", "results/test_long.json"))


def overdue(names, record, now, since=appeared):
    """name -> how many commits ago it passed, or appeared where it never did, of those that have waited for too long."""
    waited = {name: now - (record[name]["commits"] if name in record else since(name)) for name in names}
    return {name: count for name, count in waited.items() if count > MOST_LANDINGS * LANDING}


def uncommitted():
    changed = git("status", "--porcelain", "--untracked-files=no").splitlines()
    return [line.split()[-1] for line in changed if not line.endswith("results/test_long.json")]


def write_passes(passes):
    """A pass of files that no commit has would name one that did not pass."""
    if changed := uncommitted():
        print(f"not written into results/test_long.json: {', '.join(changed[:3])} differs from the last commit. Commit, then run it")
        return
    record = read_record()
    said = {"commits": commits(), "commit": git("describe", "--always", "--exclude=*"),
            "date": datetime.date.today().isoformat()}
    for word in passes:
        name, _, seconds = word.partition("=")
        record[name] = {**said, "seconds": int(seconds)}
    rows = [f" {json.dumps(name)}: {json.dumps(record[name])}" for name in sorted(record)]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def main():
    what, names = sys.argv[1], sys.argv[2:]
    if what == "order":
        print(*in_turn(names, read_record(), commits()), sep="\n")
    elif what == "passed":
        write_passes(names)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
