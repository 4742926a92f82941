#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy on the sources that changed, new ones too: tidy.py [all | BASE] [--seconds N]

BASE is a commit; without it origin/main where that is another commit, else 30 commits back, so that what landed as one
series of commits is looked at whole. A source that was clean with these very headers is not looked at again
(build-tidy/clean), which makes `all` and repeats cheap. With --seconds, newest first until the time is over; what is left
is counted, and the next call goes on there.
"""
import concurrent.futures
import hashlib
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = ROOT / "build-tidy/clean"
COMMITS_BACK = 30
INCLUDE = re.compile(rb'^#include "((?:lockstep|plugins)/[^"]+)"', re.M)


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else None


def choose_base():
    head, main = git("rev-parse", "HEAD"), git("rev-parse", "-q", "--verify", "origin/main")
    if main and main != head and (common := git("merge-base", "origin/main", "HEAD")):
        return common[0]
    commits = git("rev-list", f"--max-count={COMMITS_BACK + 1}", "--first-parent", "HEAD")
    return commits[-1]


def changed_since(base):
    """Sources in the working tree that differ from the commit or are not known to git; last changed first."""
    changed = git("diff", "--name-only", "--diff-filter=d", base, "--", "lockstep/*.cpp")
    if changed is None:
        sys.exit(f"tidy: no commit '{base}'")
    new = git("ls-files", "-o", "--exclude-standard", "lockstep/*.cpp")
    recent = git("log", "--name-only", "--format=", f"{base}..HEAD", "--", "lockstep/*.cpp")
    uncommitted = git("diff", "--name-only", "--diff-filter=d", "HEAD", "--", "lockstep/*.cpp")
    order = {name: place for place, name in reversed(list(enumerate(new + uncommitted + recent)))}
    return sorted({*changed, *new}, key=lambda name: order.get(name, len(order)))


def closure(name, found):
    """The source and every header of ours that it reaches."""
    if name not in found and (ROOT / name).is_file():
        found[name] = (ROOT / name).read_bytes()
        for header in INCLUDE.findall(found[name]):
            closure(header.decode(), found)
    return found


def key(name):
    state = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for part, content in sorted(closure(name, {}).items()):
        state.update(part.encode() + b"\0" + content + b"\0")
    return state.hexdigest()


def look_at(name, deadline):
    """What is wrong with a source, "" when nothing is; None when the time is over."""
    if time.monotonic() > deadline:
        return None
    done = subprocess.run(["clang-tidy-14", "-p", "build-tidy", "--quiet", name], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return "" if done.returncode == 0 else done.stdout


def main():
    words, deadline = sys.argv[1:], float("inf")
    if "--seconds" in words:
        at = words.index("--seconds")
        deadline = time.monotonic() + float(words[at + 1])
        del words[at:at + 2]
    base = words[0] if words else choose_base()
    every = git("ls-files", "-co", "--exclude-standard", "lockstep/*.cpp")
    files = [name for name in (every if base == "all" else changed_since(base))
             if not name.endswith("_test.cpp") and (ROOT / name).is_file()]
    keys = {name: key(name) for name in files}
    CLEAN.mkdir(parents=True, exist_ok=True)
    rest = [name for name in files if not (CLEAN / keys[name]).exists()]
    if rest:  # a compile database with one entry a file: the build itself joins each room into one unit
        subprocess.run(["cmake", "-S", ".", "-B", "build-tidy", "-G", "Ninja", "-DLOCKSTEP_UNITY=OFF",
                        "-DLOCKSTEP_TESTS=OFF"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    wrong = left = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, outcome in zip(rest, pool.map(lambda name: look_at(name, deadline), rest)):
            if outcome == "":
                (CLEAN / keys[name]).touch()
            elif outcome is None:
                left += 1
            else:
                wrong += 1
                print(f"FAIL {name}\n{outcome}", flush=True)
    print(f"tidy: {len(files)} files since {base[:10]}: {len(files) - len(rest)} were clean before, "
          f"{len(rest) - left} looked at, {wrong} of them wrong" +
          (f"; {left} not looked at for lack of time (make test-long, or `make tidy`)" if left else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
