# SPDX-License-Identifier: Apache-2.0
"""What the program says about itself: its verbs with their options, from `--help`, which prints the tables that it parses
with; the keys of its documents, from `explain --json`; the names of its catalogue. Completions, man pages and the
documentation's page per verb are made of this and of nothing else."""
import dataclasses
import json
import re
import subprocess


@dataclasses.dataclass
class Option:
    name: str
    value: str  # "" for a switch
    help: str


@dataclasses.dataclass
class Verb:
    name: str  # "plan"; of a verb with verbs of its own also "bench step"
    group: str
    summary: str
    usage: str
    options: list
    notes: str  # below the options: how it is used, examples
    text: str  # all of it
    below: list = dataclasses.field(default_factory=list)  # Verbs: those of bench


def say(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{program} {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def help_of(program, name):
    """What `lockstep NAME --help` prints; of a verb that is not in this build, for want of libtorch, that."""
    done = subprocess.run([program, *name.split(), "--help"], capture_output=True, text=True)
    if done.returncode == 3 and "liblockstep_torch.so" in done.stderr:
        return f"usage: lockstep {name} [arguments]\n\nNot in this build, which was made without libtorch.\n"
    return done.stdout if done.returncode == 0 else say(program, *name.split(), "--help")


def read_verb(program, name, group, summary):
    text = help_of(program, name)
    usage = re.search(r"^usage: (.*)$", text, re.M).group(1)
    behind = text[text.index(usage) + len(usage) + 1:]
    lines = behind.split("\n")
    options = []
    while lines and lines[0].startswith("  -"):
        found = re.match(r"  (--?[\w-]+)(?: (\S.*?))?  +(\S.*)$", lines.pop(0))
        options.append(Option(found.group(1), found.group(2) or "", found.group(3)))
    verb = Verb(name, group, summary, usage, options, "\n".join(lines).strip("\n"), text)
    if "<what>" in usage:
        table, _, verb.notes = verb.notes.partition("\n\n")
        for line in table.split("\n"):
            what, about = line.split(None, 1)
            verb.below.append(read_verb(program, f"{name} {what}", group, about))
    return verb


def read_verbs(program):
    """In the order of work, as `lockstep --help` lists them."""
    verbs, group = [], ""
    for line in say(program, "--help").split("\n"):
        row = re.match(r"  (\w+) +(\S.*)$", line)
        if row and group:
            verbs.append(read_verb(program, row.group(1), group, row.group(2)))
        elif re.match(r"[a-z]", line) and not re.match(r"(usage|first|every|lockstep)\b", line):
            group = line
    return verbs


def read_documents(program):
    return json.loads(say(program, "explain", "--json", "-"))


def keys_of(fields, prefix=""):
    """(dotted key, field) of every field that --set takes."""
    for field in fields:
        key = prefix + field["key"]
        if field.get("fields") is None:
            yield key, field
        elif field["type"] == "section":
            yield from keys_of(field["fields"], key + ".")


def catalogue_names(program):
    rows = json.loads(say(program, "doctor", "--catalogue", "--json", "-"))
    return [row["id"] for kind in ("gpus", "machines", "cpus") for row in rows[kind]]
