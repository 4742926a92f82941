#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the other pages under docs/ and of python/README.md: docs_pages.py, in an empty folder, lockstep on PATH.

What README.md and docs/start.md tell is run by front_page.py and start_page.py. Here a page's placeholders (RUN, job.json) stand for a
small trained run and its files. A command that needs a scheduler, a GPU, a peer or hours is not run here: the
table names the test that does, which must have its verb and every option. Of every command, also of a mere mention, verb and
options are the program's.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from front_page import ROOT, commands, complain, output_of, wrong

sys.path.insert(0, str(ROOT / "scripts"))
import program_help  # noqa: E402

PLACEHOLDERS = {"RUN": "runs/pets", "A": "runs/pets", "B": "runs/other", "C": "runs/pets", "FOLDER": "photos", "SOURCE": "photos", "DIR": "made",
                "FILE.onnx": "pets.onnx", "train.rec": "mine.rec", "KEY": "training", "JOB": "job.json", "SHARDS": "set",
                "results/recordings": str(ROOT / "results/recordings")}
SHORT = {"serve": ["--port", "0", "--for", "1 s", "--token-file", "token"], "tune": ["--set", "trials=2"], "order": ["--rounds", "1"]}
ENDLESS = "--live"  # until Ctrl-C
# Command, as a pattern -> the test that runs it, or the rows that it made.
ELSEWHERE = {
    r"lockstep workflow": "tests/scenarios/workflow.txt tests/slurm/workflow.sh",
    r"lockstep (prep .*radar|prep world|train examples/nowcast|eval runs/rain|plan examples/radar)":
        "tests/scenarios/nowcast.txt tests/learning/nowcast.py",
    r"lockstep (prep .*sentences|train (captions|.*/sentences).json|predict (classifier|runs/sentences))": "tests/scenarios/text.txt",
    r"lockstep (prep annotations/captions|train .*/captions.json|predict runs/captions)": "tests/scenarios/caption.txt",
    r"lockstep (prep KITTI|train examples/kitti|(eval|predict) runs/kitti)": "tests/scenarios/detect.txt",
    r"lockstep prep coco/": "tests/scenarios/instances.txt",
    r"lockstep plan examples/(resnet50.*--levers|documents/)": "examples/documents/kitti/run.sh examples/documents/minotauro/run.sh",  # advise.txt
    r"lockstep bench .*--device cuda": "scripts/measure_gpu.sh scripts/measure_fused.py",  # a GPU's own turn
    r"lockstep submit .*--(via|fetch)": "tests/slurm/via.sh",
    r"lockstep plan job.json --on .*--gpus": "tests/scenarios/plan.txt",
    r"lockstep get weights": "tests/scenarios/weights.txt",  # a network
    r"lockstep submit .*predict": "tests/slurm/collection.sh tests/scenarios/submit.txt",
    r"lockstep submit --cancel": "tests/slurm/chain.sh",
    r"lockstep submit": "tests/scenarios/submit.txt",
    r"lockstep bench (scaling)": "tests/scenarios/scaling.txt",
    r"lockstep bench (loader|order)": "tests/scenarios/loader.txt",
    r"lockstep bench": "tests/scenarios/bench.txt",
    r"lockstep predict .*--columns": "tests/scenarios/instances.txt",
    r"lockstep predict .*--ranks": "tests/scenarios/collection.txt",
    r"lockstep eval .*--ranks": "tests/scenarios/eval.txt",
    r"lockstep .*--ranks": "tests/scenarios/train.txt",
    r"lockstep eval --(coco|kitti)": "tests/scenarios/detection_scores.txt",
    r"lockstep predict .*--abstain": "tests/scenarios/trust.txt",
    r"lockstep serve .*--store": "tests/scenarios/serve.txt",
    r"lockstep store (add|verify)": "tests/scenarios/store.txt",
    r"lockstep prep list.csv": "docs/start.md",  # of which start_page.py runs every line
    r"lockstep plan (JOB )?--advise": "tests/scenarios/advise.txt",
    r"lockstep tune .*(--partition|\./)": "tests/scenarios/tune.txt",
}
FILLED = {"lockstep predict FILE --job JOB": "lockstep predict runs/pets/weights.safetensors photos --job job.json",
          "lockstep predict RUN IMAGE|FOLDER... --to FILE": "lockstep predict RUN photos --to found.csv"}
MEASURED = {"docs/figures.md", "docs/gpu.md", "docs/decisions/0010-io-uring-stays.md"}  # commands beside the rows that they made


def prepare():
    output_of(*shlex.split("lockstep prep --synthesize shapes --count 420 --classes 3 --image-size 32 --to drawn"))
    shutil.move("drawn/train", "photos")
    output_of(*shlex.split("lockstep prep photos --to set"))
    pathlib.Path("job.json").write_text(json.dumps({
        "name": "pets", "data": {"train": "set/train", "validate": "drawn/validate", "image_size": 16}, "model": {"name": "smallcnn", "classes": 3},
        "training": {"global_batch": 32, "epochs": 1}}))
    pathlib.Path("study.json").write_text(json.dumps({
        "name": "study", "job": "job.json", "space": {"training.optimizer.lr": {"log": [0.001, 0.1]}}, "trials": 2}))
    for run in ("runs/pets", "runs/other"):
        output_of("lockstep", "train", "job.json", "--run", run)
    output_of(*shlex.split("lockstep eval runs/pets --calibrate --features"))
    output_of(*shlex.split("lockstep plan job.json --on a100-80 --json plan.json --save-recording mine.rec"))


def check_options(verbs, words, command):
    """The verb is there, and it has these options."""
    if len(words) < 2 or words[1].startswith(("-", "<")):
        return
    verb = verbs.get(" ".join(words[1:3])) or verbs.get(words[1])
    if verb is None:
        complain(f"there is no verb '{words[1]}': {command}")
        return
    known = {option.name for option in verb.options} | {"--help"} | {option.name for one in verb.below for option in one.options}
    for word in words[2:]:
        if word == "--":
            break
        if word.startswith("--") and word.split("=")[0] not in known:
            complain(f"lockstep {verb.name} has no option {word}: {command}")


def tried_elsewhere(command, words):
    for pattern, names in ELSEWHERE.items():
        if re.match(pattern, command):
            text = "".join((ROOT / name).read_text() for name in names.split())
            missing = [word for word in words[1:] if word.startswith("--") and len(word) > 2 and word not in text]
            if words[1] not in text or missing:
                complain(f"{names} does not try {words[1]} {missing}: {command}")
            return True
    return False


def is_mention(words):
    """A verb that is spoken of, not a line to type."""
    return len(words) == 2 or any(word == "..." or "<" in word for word in words) or \
        words[-1] in ("--plan", "--ranks", "--cpu-load", "shapes", "N") or words[:3] == ["lockstep", "bench", words[-1]] or \
        words == ["lockstep", "plan", "--json", "-"]


def run(command):
    started = time.monotonic()
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(FILLED.get(command, command))]
    more = SHORT.get(words[1], [])
    if words[1] == "tune" and ({"--best", "--report"} & set(words)):
        more = []
    if ENDLESS in words:
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        said, code = child.communicate()[0], child.returncode
    else:
        behind = words.index(">") if ">" in words else len(words)
        done = subprocess.run(words[:behind] + more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said, code = done.stdout, done.returncode
    if code != 0:
        complain(f"exit {code}: {command}\n{said[-2000:]}")
    print(f"{time.monotonic() - started:5.1f} s  {command}", flush=True)


def pages():
    for path in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "python/README.md"]):
        if path.name != "start.md":
            yield path.relative_to(ROOT).as_posix(), path.read_text().replace("    $ ", "    ")


def main():
    verbs = {one.name: one for verb in program_help.read_verbs(shutil.which("lockstep")) for one in (verb, *verb.below)}
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    os.symlink(ROOT / "examples", "examples")
    prepare()
    done, ran, elsewhere = set(), 0, 0
    for page, text in pages():
        for command in commands(text):
            if command in done:
                continue
            done.add(command)
            words = shlex.split(command.split(" && ")[0])
            if words[0] == "make":
                if words[1] not in targets:
                    complain(f"{page}: there is no '{command}'")
            elif words[0] != "lockstep":
                if not (ROOT / words[0]).exists():
                    complain(f"{page}: there is no {words[0]}")
            else:
                check_options(verbs, words, command)
                if page in MEASURED or is_mention(words):
                    continue
                if tried_elsewhere(command, words):
                    elsewhere += 1
                else:
                    run(command)
                    ran += 1
    print(f"docs pages: {len(done)} commands, {ran} run, {elsewhere} run by other tests, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
