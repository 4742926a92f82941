#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes completions for bash, zsh and fish and the man pages: manual.py PROGRAM FOLDER.

FOLDER gets what PREFIX/share has: bash-completion/completions, zsh/site-functions, fish/vendor_completions.d, man/man1 (the
program and a page per verb) and man/man5 (a page per document). tests/house/manual_test.py has shells and man check them.
"""
import os
import pathlib
import re
import sys
import time

import program_help

CHOICES = {"--device": ["cpu", "cuda"], "--weights": ["best", "last"], "--iou": ["bbox", "segm"], "--sets": ["lac", "aps"],
           "--heat": ["grad_cam", "rollout", "occlusion"], "--score": ["energy", "mahalanobis", "neighbour"],
           "--advise": ["apply", "buy", "rent", "cpu-or-gpu", "table"]}
PATHS = re.compile(r"FILE|DIR|FOLDER|PATH|JOB|RUN|LIST|CSV|PREFIX|STUDY|IMAGE|SOURCE")


def values_of(option, names, settings):
    """What may stand behind an option: a list of words, "path", or None."""
    if option.name == "--on":
        return [*names, "all", "here", "cpu"]
    if option.name == "--set":
        return settings
    if option.name in CHOICES:
        return CHOICES[option.name]
    return "path" if PATHS.search(option.value) else None


def flat(verbs):
    return [one for verb in verbs for one in (verb, *verb.below)]


def job_settings(documents):
    job = next(document for document in documents if document["key"] == "job")
    return [f"{key}={choice}" for key, field in program_help.keys_of(job["fields"]) for choice in field.get("choices", [""])]


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash(verbs, names, settings):
    rows = []
    for verb in flat(verbs):
        words = " ".join(option.name for option in verb.options) + " --help"
        rows.append(f"  [{quoted(verb.name)}]={quoted(words)}")
    values = {}
    for verb in flat(verbs):
        for option in verb.options:
            found = values_of(option, names, settings)
            values[option.name] = "path" if found == "path" else "none" if option.value and found is None else found
    cases = []
    for name, found in sorted(values.items()):
        if found == "none":
            cases.append(f"    {name}) return ;;")
        elif isinstance(found, list) and name not in ("--on", "--set"):
            cases.append(f"    {name}) COMPREPLY=($(compgen -W {quoted(' '.join(found))} -- \"$word\")); return ;;")
    below = {verb.name: " ".join(one.name.split()[1] for one in verb.below) for verb in verbs if verb.below}
    return f"""# Completion of lockstep for bash. Made by scripts/manual.py from the program's own tables.
_lockstep() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} verb=${{COMP_WORDS[1]}}
  local -A options=(
{chr(10).join(rows)}
  )
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {quoted(' '.join(verb.name for verb in verbs) + ' --help --version')} -- "$word"))
    return
  fi
{chr(10).join(f'  if [ "$verb" = {name} ]; then' + chr(10) + f'    if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W {quoted(words)} -- "$word")); return; fi' + chr(10) + '    verb="$verb ${COMP_WORDS[2]}"' + chr(10) + '  fi' for name, words in below.items())}
  if [ "$word" = "=" ]; then word=; fi
  case $before in
    --on)  # several, with commas between them
      local done=; [[ $word == *,* ]] && done=${{word%,*}},
      COMPREPLY=($(compgen -P "$done" -W {quoted(' '.join([*names, 'all', 'here', 'cpu']))} -- "${{word##*,}}"))
      return ;;
    --set)
      COMPREPLY=($(compgen -W {quoted(' '.join(settings))} -- "$word")); compopt -o nospace; return ;;
{chr(10).join(cases)}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "${{options[$verb]-}}" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2> /dev/null
  fi
}}
complete -F _lockstep lockstep
"""


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh_action(option, names, settings):
    if not option.value:
        return ""
    found = values_of(option, names, settings)
    label = zsh_text(option.value)
    if option.name == "--on":
        return f":{label}:_sequence compadd - {' '.join(found)}"
    if option.name == "--set":
        return f":{label}:(({' '.join(zsh_text(word) for word in found)}))".replace("((", "(").replace("))", ")")
    if found == "path":
        return f":{label}:_files"
    return f":{label}:({' '.join(found)})" if found else f":{label}: "


def zsh(verbs, names, settings):
    def arguments(verb, indent):
        rows = [f"'*{option.name}[{zsh_text(option.help)}]{zsh_action(option, names, settings)}'" for option in verb.options
                if option.name != "--help"]
        return f"_arguments -s -S \\\n{indent}  " + f" \\\n{indent}  ".join([*rows, "'--help[this text]'", "'*:file:_files'"])

    def described(ones, strip=0):
        return "\n".join(f"    '{one.name.split()[strip]}:{zsh_text(one.summary)}'" for one in ones)

    cases = []
    for verb in verbs:
        if verb.below:
            inner = "\n".join(f"          {one.name.split()[1]}) {arguments(one, '            ')} ;;" for one in verb.below)
            cases.append(f"    {verb.name})\n      if (( CURRENT == 2 )); then\n        what=(\n{described(verb.below, 1)}\n        )\n"
                         f"        _describe -t what what what\n      else\n        shift words; (( CURRENT-- ))\n"
                         f"        case $words[1] in\n{inner}\n        esac\n      fi ;;")
        else:
            cases.append(f"    {verb.name}) {arguments(verb, '      ')} ;;")
    return f"""#compdef lockstep
# Completion of lockstep for zsh. Made by scripts/manual.py from the program's own tables.
_lockstep() {{
  local -a verbs what
  verbs=(
{described(verbs)}
  )
  if (( CURRENT == 2 )); then
    _describe -t verbs verb verbs
    return
  fi
  shift words; (( CURRENT-- ))
  case $words[1] in
{chr(10).join(cases)}
  esac
}}
_lockstep "$@"
"""


def fish(verbs, names, settings):
    lines = ["# Completion of lockstep for fish. Made by scripts/manual.py from the program's own tables.",
             "complete -c lockstep -n __fish_use_subcommand -f -l help -d 'the verbs'",
             "complete -c lockstep -n __fish_use_subcommand -f -l version -d 'version and commit'"]
    for verb in verbs:
        lines.append(f"complete -c lockstep -n __fish_use_subcommand -f -a {verb.name} -d {fish_word(verb.summary)}")
    for verb in verbs:
        seen = f"'__fish_seen_subcommand_from {verb.name}'"
        for one in verb.below:
            lines.append(f"complete -c lockstep -n {seen} -f -a {one.name.split()[1]} -d {fish_word(one.summary)}")
        options = {option.name: option for one in (verb, *verb.below) for option in one.options}
        for option in options.values():
            found = values_of(option, names, settings)
            form = f"-l {option.name[2:]}" if option.name.startswith("--") else f"-s {option.name[1:]}"
            behind = "" if not option.value else " -r -F" if found == "path" else \
                f" -x -a {fish_word(' '.join(found))}" if found else " -x"
            lines.append(f"complete -c lockstep -n {seen} {form}{behind} -d {fish_word(option.help)}")
    return "\n".join(lines) + "\n"


def fish_word(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def roff(text):
    """Text for mdoc: no line that begins as a request, no escape of ours."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def word(text):
    """One argument of a macro."""
    return '"' + roff(text).replace('"', '""') + '"'


def head(name, section, about):
    day = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))  # as packagers ask for
    return [".\\\" Made by scripts/manual.py from the program's own tables.", f".Dd {time.strftime('%B %-d, %Y', day)}", f".Dt {name.upper()} {section}",
            ".Os", ".Sh NAME", f".Nm {name}", f".Nd {roff(about)}"]


def literal(text):
    return [".Bd -literal", *(roff(line) if line else "\\&" for line in text.split("\n")), ".Ed"]


def verb_page(verb):
    name = "lockstep-" + verb.name.replace(" ", "-")
    lines = [*head(name, 1, verb.summary), ".Sh SYNOPSIS", ".Nm lockstep", *(f".Cm {part}" for part in verb.name.split())]
    behind = verb.usage.split("lockstep " + verb.name, 1)[1].strip()
    lines += [f".Ar {word(behind)}"] if behind else []
    lines += [".Sh DESCRIPTION"]
    if verb.options:
        lines += ["The options are as follows:", ".Bl -tag -width Ds"]
        for option in verb.options:
            value = f" Ar {word(option.value)}" if option.value else ""
            lines += [f".It Fl {roff(option.name[1:])}{value}", roff(option.help)]
        lines += [".El"]
    if verb.below:
        lines += ["It measures one of these:", ".Bl -tag -width Ds"]
        for one in verb.below:
            lines += [f".It Cm {one.name.split()[1]}", roff(one.summary)]
        lines += [".El"]
    notes, _, examples = re.sub(r"^examples?: ", "EXAMPLES\n", verb.notes, flags=re.M).partition("EXAMPLES\n")
    if notes.strip():
        lines += literal(notes.strip("\n"))
    lines += exit_status()
    if examples:
        lines += [".Sh EXAMPLES", *literal("\n".join(line.strip() for line in examples.strip("\n").split("\n")))]
    return name, "\n".join([*lines, ".Sh SEE ALSO", ".Xr lockstep 1 ,", ".Xr lockstep-job 5"]) + "\n"


def exit_status():
    rows = [("0", "done"), ("2", "the user must act"), ("3", "the machine"), ("4", "a bug"), ("85", "stopped in order: start it again")]
    return [".Sh EXIT STATUS", ".Bl -tag -width Ds", *(line for code, text in rows for line in (f".It {code}", text)), ".El"]


def main_page(verbs, documents):
    lines = [*head("lockstep", 1, "plan, prepare, train, evaluate and deploy deep networks on shared machines"), ".Sh SYNOPSIS",
             ".Nm lockstep", ".Ar verb", ".Op Ar arguments", ".Sh DESCRIPTION"]
    lines += ["A job says what to train, a machine document where.", "The verbs, in the order of work:"]
    for group in dict.fromkeys(verb.group for verb in verbs):
        lines += [f".Ss {group[0].upper()}{roff(group[1:])}", ".Bl -tag -width Ds"]
        for verb in verbs:
            if verb.group == group:
                lines += [f".It Xr lockstep\\-{verb.name} 1", roff(verb.summary)]
        lines += [".El"]
    lines += exit_status()
    pages = [f".Xr lockstep\\-{verb.name} 1 ," for verb in sorted(verbs, key=lambda verb: verb.name)]
    pages += [f".Xr lockstep\\-{name} 5 ," for name in sorted(document["key"] for document in documents)]
    return "\n".join([*lines, ".Sh SEE ALSO", *pages[:-1], pages[-1].rstrip(" ,")]) + "\n"


def field_lines(field):
    facts = [field["type"] if not field.get("choices") else "one of " + ", ".join(field["choices"])]
    facts += [f"in {field['unit']}"] if field.get("unit") else []
    if "default" in field:
        facts.append(f"default {str(field['default']).lower() if isinstance(field['default'], bool) else field['default']!r}")
    facts += [f"or {field['absent']}"] if field.get("absent") else []
    facts += [field["check"]] if field.get("check") else []
    sentences = re.split(r"(?<=[.?]) (?=[A-Z])", field["help"] + ".")
    return [*map(roff, sentences), roff("; ".join(facts)) + "."]


def document_page(document):
    name = "lockstep-" + document["key"]
    lines = [*head(name, 5, document["help"]), ".Sh DESCRIPTION",
             "JSON in UTF\\-8, with comments; an unknown key is an error."]

    def section(fields, prefix, about):
        rows = [".Ss " + word(prefix)] if prefix else []
        rows += [roff(about) + "."] if prefix else []
        rows += [".Bl -tag -width Ds"]
        for field in fields:
            rows += [f".It Va {roff(field['key'])}", *field_lines(field)]
        rows += [".El"]
        for field in fields:
            if field.get("fields"):
                mark = {"list of sections": "[]", "sections by name": ".NAME"}.get(field["type"], "")
                rows += section(field["fields"], f"{prefix}{'.' if prefix else ''}{field['key']}{mark}", field["help"])
        return rows

    return name, "\n".join([*lines, *section(document["fields"], "", ""), ".Sh SEE ALSO", ".Xr lockstep-explain 1"]) + "\n"


def write(folder, verbs, documents, names):
    """All of them below `folder`; gives how many man pages."""
    settings = job_settings(documents)
    pages = {"bash-completion/completions/lockstep": bash(verbs, names, settings),
             "zsh/site-functions/_lockstep": zsh(verbs, names, settings),
             "fish/vendor_completions.d/lockstep.fish": fish(verbs, names, settings),
             "man/man1/lockstep.1": main_page(verbs, documents)}
    for section, made in ((1, map(verb_page, flat(verbs))), (5, map(document_page, documents))):
        pages.update({f"man/man{section}/{name}.{section}": page for name, page in made})
    for name, page in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(page)
    return len(pages) - 3


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    count = write(folder, program_help.read_verbs(program), program_help.read_documents(program), program_help.catalogue_names(program))
    print(f"{folder}: completions for bash, zsh and fish, {count} man pages")


if __name__ == "__main__":
    main()
