#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the directives of a PBS script against the documented syntax: pbs_syntax.py [--torque] < SCRIPT.

The rules are those of qsub(1B) and pbs_resources(7B) of OpenPBS 23.06; with --torque those of Torque 6's qsub and its
-l nodes=. Prints each wrong line and exits 1; a script without any directive is wrong too.
"""
import re
import sys

NAME = r"[A-Za-z][A-Za-z0-9_.+-]{0,14}"  # 15 characters: PBS takes more since version 14, Torque does not
RESOURCE = r"[A-Za-z][A-Za-z0-9_-]*=[^:\s]+"
OPTIONS = {
    "-N": NAME,
    "-j": "oe|eo|n",
    "-o": r'"(?:[^"\\]|\\.)*"|\S+',
    "-e": r'"(?:[^"\\]|\\.)*"|\S+',
    "-r": "y|n",
    "-q": r"[A-Za-z][\w.-]*(@[\w.-]+)?",
    "-A": r"\S+",
    "-P": r"\S+",
    "-m": r"n|[abej]+",
    "-M": r"\S+@\S+",
    "-W": r"(depend=(after|afterok|afternotok|afterany):[\w.:-]+|group_list=\S+|umask=\d+|block=true)",
    "-l": None,  # below
    "-n": "",  # Torque: a node for this job alone
}
TIME = r"walltime=(\d+:)?\d{1,2}:\d{2}(:\d{2})?"
CHUNK = rf"(\d+:)?{RESOURCE}(:{RESOURCE})*"
PRO = [TIME, rf"select={CHUNK}(\+{CHUNK})*", r"place=(free|pack|scatter|vscatter)(:(excl|exclhost|shared))?(:group=\w+)?"]
JOB_WIDE = [r"ncpus=\d+", r"mem=\d+(kb|mb|gb|tb)", r"ngpus=\d+"]  # in place of select and place
TORQUE = [TIME, r"mem=\d+(kb|mb|gb|tb)", r"nodes=\d+(:ppn=\d+)?(:gpus=\d+)?(:[A-Za-z][\w-]*)*", r"qos=\w+"]


def wrong_with(line, torque):
    words = line[len("#PBS"):].strip()
    option, _, value = words.partition(" ")
    if option not in OPTIONS:
        return f"unknown option '{option}'"
    if option == "-n" and not torque:
        return "-n is Torque's"
    if option == "-l":
        forms = TORQUE if torque else PRO + JOB_WIDE
        return "" if any(re.fullmatch(form, value) for form in forms) else f"no resource request: '{value}'"
    return "" if re.fullmatch(OPTIONS[option], value.strip()) else f"not a value of {option}: '{value}'"


def check(script, torque=False):
    """The complaints about a script, each with its line number."""
    lines = script.splitlines()
    wrong = [] if lines and lines[0].startswith("#!") else ["1: no interpreter line"]
    seen, body = [], False
    for number, line in enumerate(lines, 1):
        if line.startswith("#PBS"):
            if body:
                wrong.append(f"{number}: a directive below the first command is not read")
            reason = wrong_with(line, torque)
            if reason:
                wrong.append(f"{number}: {reason}")
            key = line.split()[1] + (" " + line.split()[2].split("=")[0] if line.split()[1] == "-l" else "")
            if key in seen:
                wrong.append(f"{number}: {key} stands there twice")
            seen.append(key)
        elif line.strip() and not line.startswith("#"):
            body = True
    job_wide = [key for key in seen if any(re.fullmatch(form, key[3:] + "=1gb") or re.fullmatch(form, key[3:] + "=1")
                                           for form in JOB_WIDE)]
    if not torque and job_wide and {"-l select", "-l place"} & set(seen):
        wrong.append(f"{job_wide[0]} cannot stand beside select or place")  # qsub's own words, recorded
    needed = ["-N", "-l walltime", "-l nodes" if torque else "-l ncpus" if job_wide else "-l select"]
    return wrong + [f"no {key}" for key in needed if key not in seen]


def main():
    script = sys.stdin.read()
    script = script[script.find("#!"):] if "#!" in script else script  # what `submit --dry-run` says first
    wrong = check(script, "--torque" in sys.argv[1:])
    print("\n".join(wrong) or f"{sum(line.startswith('#PBS') for line in script.splitlines())} directives, all good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
