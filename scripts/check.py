#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a change to a room must pass before `make test`: check.py [ROOM...], as `make check [ROOM="model step"]`.

The tree and the format of everything; of each room its unit tests, the oracles and scenario files that name it (their
line `# rooms:`, where `verbs` names every verb) and the scenario file of its name. A verb is a room too: verbs/plan.
Without ROOM: the rooms in which files differ from main (origin/main, main, or the commit before this one), the scenario
files and oracles that differ themselves, and the scenario files that expect a message which is gone.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/tree"))
from tree import Tree  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
os.environ["LOCKSTEP_BUILD"] = BUILD
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # these two as in scripts/test.sh, which says why
os.environ.setdefault("LOCKSTEP_BUSY_CORES", "0")
PYTHON = ".deps/oracles/bin/python"


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def compared_with():
    head = git("rev-parse", "HEAD")
    for name in ("origin/main", "main", "HEAD~1"):
        base = git("merge-base", name, "HEAD")
        if base and (base != head or git("status", "--porcelain")):
            return base[0]
    return None


def changed_files(base):
    return git("diff", "--name-only", base) + git("ls-files", "-o", "--exclude-standard") if base else []


def expecting_what_is_gone(base):
    """The scenario files with a piece of a message that the change took out of the sources."""
    done = subprocess.run(["git", "diff", "-U0", base, "--", "lockstep", ":!*_test.cpp"], cwd=ROOT, capture_output=True, text=True)
    pieces = {"-": set(), "+": set()}
    for line in done.stdout.splitlines():
        if line[:1] in pieces and not line.startswith(("---", "+++")):
            pieces[line[0]] |= {piece.strip() for piece in re.findall(r'"((?:[^"\\]|\\.)*)"', line)}
    gone = {piece for piece in pieces["-"] - pieces["+"] if len(piece) >= 12 and " " in piece}
    for path in (ROOT / "tests/scenarios").glob("*.txt"):
        expected = path.read_text().replace("\\", "")
        if any(piece in expected for piece in gone):
            yield path.stem


def rooms_of(files, rooms):
    """A file belongs to the longest room that is its folder."""
    found = set()
    for name in files:
        inside = [room for room in rooms if name.startswith(f"lockstep/{room}/")]
        if inside:
            found.add(max(inside, key=len))
    return sorted(found, key=rooms.index)


def naming(rooms, pattern):
    """The stems of the files below tests/ whose line `# rooms:` names one of the rooms."""
    for path in (ROOT / "tests").glob(pattern):
        named = re.search(r"^# rooms: (.*)$", path.read_text(), re.M)
        if named and set(named.group(1).split()) & {name for room in rooms for name in (room, room.split("/")[0])}:
            yield path.stem


def main():
    tree = Tree(ROOT)
    rooms = [row for room in tree.rooms for row in (room, *(f"{room}/{below}" for below in sorted(tree.folders.get(room, ()))))]
    rooms += [f"verbs/{verb}" for verb in tree.verbs]
    base = None if sys.argv[1:] else compared_with()
    files = changed_files(base)
    chosen = sys.argv[1:] or rooms_of(files, rooms)
    for room in chosen:
        if room not in rooms:
            sys.exit(f"check: there is no room '{room}'; there are: {' '.join(rooms)}")
    stems = {room.split("/")[-1] for room in chosen} | {pathlib.Path(name).stem for name in files if name.startswith("tests/")}
    if {"lockstep/main.cpp", "lockstep/verbs/verbs.def"} & set(files):
        stems |= {"program", "front_page"}
    oracles = sorted({*naming(chosen, "oracles/*.py"), *(path.stem for path in (ROOT / "tests/oracles").glob("*.py")
                                             if path.stem in stems and path.stem != "run")})
    stems |= {*naming(chosen, "scenarios/*.txt"), *(expecting_what_is_gone(base) if base else ())}
    scenarios = sorted(str(path) for path in (ROOT / "tests/scenarios").glob("*.txt") if path.stem in stems)
    tests = [room.replace("verbs/", "verb_").replace("/", "_") for room in chosen
             if any((ROOT / "lockstep" / room).glob("*_test.cpp"))]
    print(f"check: rooms {' '.join(chosen) or 'none'}; oracles {' '.join(oracles) or 'none'}; "
          f"scenarios {' '.join(pathlib.Path(path).stem for path in scenarios) or 'none'}")

    results = []

    def part(name, command):
        started = time.monotonic()
        print(f"\n== {name}", flush=True)
        good = subprocess.run(["bash", "-c", command], cwd=ROOT).returncode == 0
        results.append((good, f"{'ok  ' if good else 'FAIL'}  {name} {time.monotonic() - started:.0f} s"))
        return good

    sound = part("tree", "python3 tests/tree/tree.py")  # what it names, the compiler says minutes later
    part("format", "git ls-files -z -co --exclude-standard '*.h' '*.cpp' | xargs -0 clang-format-14 --dry-run -Werror")
    targets = [f"test_{test}" for test in tests]
    targets += (["all"] if oracles or scenarios else []) + (["probes"] if oracles else [])
    if sound and targets and part("build", f"make --no-print-directory build BUILD={BUILD} TARGET='{' '.join(targets)}'"):
        if tests:
            part("unit", f"ctest --test-dir {BUILD} -R '^unit[.]({'|'.join(tests)})$' --output-on-failure --no-tests=error")
        if oracles and (ROOT / PYTHON).exists():
            part("oracles", f"{PYTHON} tests/oracles/run.py {' '.join(oracles)}")
        elif oracles:
            print(f"\nskip  oracles {' '.join(oracles)}: scripts/deps.sh zoo (networks, steps, pixels) or oracles (all)")
        if scenarios:
            part("scenarios", f"python3 tests/scenarios/run.py {' '.join(scenarios)}")
    print("\n" + "\n".join(line for _, line in results))
    return 0 if all(good for good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
