#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PBS server that answers with what a real one said (tests/pbs/recorded).

    recorded.py --install FOLDER ['PATTERN => RECORDED COMMAND'...]   qsub, qstat, ... into FOLDER, which goes on PATH
    recorded.py --say 'RECORDED COMMAND'                              that answer

A call is answered when the same words were recorded, or when a PATTERN (as a shell's, for the whole line) says for which
recorded command it stands: names of scripts and ids are the test's own. A command that was recorded several times
gives its answers in turn, the last one again and again; `FILE: COMMAND` is that of one file (`13: qstat -x -f 9.n1 |
$KEY`). Anything else fails with exit code 97 and the word "unrecorded", and stands in FOLDER/unrecorded; every call stands
in FOLDER/calls.
"""
import fnmatch
import pathlib
import shlex
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = ("qsub", "qstat", "qdel", "qsig", "qselect", "pbsnodes")
UNRECORDED = 97


def read_answers():
    """(file, command) -> its answers in order: (stdout, stderr, exit code)."""
    answers = {}
    for path in sorted((HERE / "recorded").glob("*.txt")):
        command, out, err, where = None, [], [], None
        for line in path.read_text().splitlines():
            if line.startswith("$ "):
                command, out, err = line[2:], [], []
                where = out
            elif command is None or line == "[...]" or line.startswith("[the same"):
                continue
            elif line == "[stderr]":
                where = err
            elif line.startswith("exit ") and line[5:].lstrip("-").isdigit():
                answer = ("".join(out), "".join(err), int(line[5:]))
                answers.setdefault((path.name[:2], command), []).append(answer)
                command = None
            else:
                where.append(line + "\n")
    return answers


def find(answers, command):
    file, colon, rest = command.partition(": ")
    if colon and file.isdigit():
        return answers.get((file, rest), [])
    return [answer for (_, recorded), found in sorted(answers.items()) if recorded == command for answer in found]


def answer_call(folder, words):
    line = shlex.join(words)
    calls = folder / "calls"
    before = calls.read_text().splitlines() if calls.exists() else []
    with open(calls, "a") as log:
        log.write(line + "\n")
    stands_for = line
    for rule in (folder / "rules").read_text().splitlines():
        pattern, _, recorded = rule.partition(" => ")
        if fnmatch.fnmatchcase(line, pattern):
            stands_for = recorded
            break
    found = find(read_answers(), stands_for)
    if not found:
        with open(folder / "unrecorded", "a") as log:
            log.write(line + "\n")
        sys.stderr.write(f"unrecorded: {line}: tests/pbs/recorded has no such command\n")
        return UNRECORDED
    out, err, code = found[min(before.count(line), len(found) - 1)]
    sys.stdout.write(out)
    sys.stderr.write(err)
    return code


def install(folder, rules):
    folder.mkdir(parents=True, exist_ok=True)
    answers = read_answers()
    for rule in rules:
        if not find(answers, rule.partition(" => ")[2]):
            sys.exit(f"no recorded command of this rule: {rule}")
    (folder / "rules").write_text("".join(rule + "\n" for rule in rules))
    for log in ("calls", "unrecorded"):
        (folder / log).unlink(missing_ok=True)
    for name in COMMANDS:
        # The tests' PATH may hold nothing but this folder.
        script = f"#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin exec python3 -SE {shlex.quote(__file__)} --call {shlex.quote(str(folder))} {name} \"$@\"\n"
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)


def main():
    if sys.argv[1] == "--call":
        return answer_call(pathlib.Path(sys.argv[2]), sys.argv[3:])
    if sys.argv[1] == "--install":
        return install(pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:])
    found = find(read_answers(), sys.argv[2])
    if not found:
        sys.exit(f"unrecorded: {sys.argv[2]}")
    sys.stdout.write(found[0][0])
    return 0


if __name__ == "__main__":
    __file__ = str(pathlib.Path(__file__).resolve())
    sys.exit(main())
