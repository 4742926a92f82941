#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completions and man pages, judged by those who read them: manual_test.py, lockstep on PATH.

bash, zsh and fish parse what scripts/manual.py writes and bash and fish complete with it; mandoc and man find nothing to
say about the pages. Every verb and option of the program stands in each of them.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import manual as writer  # noqa: E402
import program_help  # noqa: E402

wrong = []


def complain(what):
    wrong.append(what)
    print(f"WRONG {what}", flush=True)


def said(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stdout}"


def bash_words(script, line):
    """What bash offers behind a line whose last word is not finished."""
    words = line.split(" ")
    command = (f"source {script}; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; "
               'compopt() { :; }; _lockstep; printf "%s\\n" "${COMPREPLY[@]}"')
    return said("bash", "-c", command).split()


def fish_words(script, line):
    return [row.split("\t")[0] for row in said("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'").splitlines()]


def check_completions(share, verbs):
    bash, zsh, fish = (share / name for name in ("bash-completion/completions/lockstep", "zsh/site-functions/_lockstep",
                                                 "fish/vendor_completions.d/lockstep.fish"))
    for shell, script in (("bash", bash), ("zsh", zsh), ("fish", fish)):
        if not shutil.which(shell):
            complain(f"{shell} is not installed: scripts/deps.sh test")
        elif said(shell, "-n", str(script)):
            complain(f"{shell} -n {script.name}: {said(shell, '-n', str(script))}")
        for verb in verbs:
            for option in verb.options:
                word = option.name.lstrip("-") if shell == "fish" else option.name
                if word not in script.read_text():
                    complain(f"{shell} does not know lockstep {verb.name} {option.name}")
    cases = [("lockstep pl", "plan"), ("lockstep plan --no-s", "--no-search"), ("lockstep plan --on a100", "a100-80"),
             ("lockstep train --device ", "cuda"), ("lockstep bench ", "loader"), ("lockstep bench loader --sh", "--shards"),
             ("lockstep train --set training.prec", "training.precision=bf16")]
    for ask, script in ((bash_words, bash), (fish_words, fish)):
        for line, expected in cases:
            if expected not in ask(script, line):
                complain(f"{ask.__name__}: '{line}' does not offer {expected}: {ask(script, line)[:10]}")
    listed = bash_words(bash, "lockstep plan --on h100,a100-4")
    if "h100,a100-40" not in listed:
        complain(f"bash: no second machine behind a comma: {listed}")


def check_pages(share, verbs, documents):
    pages = sorted((share / "man").rglob("lockstep*"))
    expected = {"lockstep.1", *(f"lockstep-{verb.name.replace(' ', '-')}.1" for verb in verbs),
                *(f"lockstep-{document['key']}.5" for document in documents)}
    if {page.name for page in pages} != expected:
        complain(f"pages: {sorted({page.name for page in pages} ^ expected)}")
    lint = said("mandoc", "-T", "lint", "-W", "warning", *map(str, pages))
    if lint:
        complain(f"mandoc: {lint[:2000]}")
    shown = subprocess.run(["man", "--warnings", "-l", *map(str, pages)], capture_output=True, text=True)
    if shown.returncode != 0 or shown.stderr:
        complain(f"man: {shown.stderr[:2000]}")
    job = overstruck(said("mandoc", "-T", "utf8", str(share / "man/man5/lockstep-job.5")))
    for key, _ in program_help.keys_of(next(d for d in documents if d["key"] == "job")["fields"]):
        if key.rsplit(".", 1)[-1] not in job:
            complain(f"lockstep-job.5 does not have {key}")


def overstruck(text):
    """Without what a terminal prints twice for bold and underlined letters."""
    out = []
    for letter in text:
        if letter == "\b":
            out.pop()
        else:
            out.append(letter)
    return "".join(out)


def main():
    program = shutil.which("lockstep")
    verbs, documents = program_help.read_verbs(program), program_help.read_documents(program)
    every = writer.flat(verbs)
    with tempfile.TemporaryDirectory() as folder:
        share = pathlib.Path(folder)
        pages = writer.write(share, verbs, documents, program_help.catalogue_names(program))
        check_completions(share, every)
        check_pages(share, every, documents)
    for verb in every:
        listed = verb.text.count("\n  --")
        if not verb.below and listed != len(verb.options):
            complain(f"lockstep {verb.name} --help: {listed} options, {len(verb.options)} understood")
    print(f"manual: {len(every)} verbs, {pages} pages, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
