#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: training results task
"""What Python sees of a run (lockstep.Run, evaluate, predict) as pandas has it, beside what the program itself wrote.

A classifier learns for two epochs; steps, epochs, evaluations, confusion and classes are held against the journal and
eval.json, and answers about paths, a folder and an image of Pillow against `lockstep predict --json`."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pandas
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
os.environ["PATH"] = f"{BUILD / 'bin'}:{os.environ['PATH']}"
sys.path.insert(0, str(ROOT / "python"))
import lockstep  # noqa: E402

CLASSES, STEPS = 3, 6
JOB = {"name": "small", "data": {"train": "set/train", "validate": "set/validate", "image_size": 16},
       "model": {"name": "linear", "classes": CLASSES}, "training": {"global_batch": 16, "epochs": 2, "threads": 1}}


def program(*words):
    done = subprocess.run(["lockstep", *words, "--json", "-"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_run(run):
    lines = [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()]
    assert isinstance(run.journal, pandas.DataFrame) and list(run.journal["event"]) == [line["event"] for line in lines]
    assert run.steps["steps"].sum() == run.steps["step"].iloc[-1] == STEPS, run.steps
    for column in ("loss", "lr", "seconds"):
        assert list(run.steps[column]) == [line[column] for line in lines if line["event"] == "step"], column
    assert len(run.epochs) == JOB["training"]["epochs"] and list(run.epochs["epoch"]) == [1, 2], run.epochs
    assert list(run.metrics["top1"]) == [line["top1"] for line in lines if line["event"] == "evaluate"] and len(run.metrics), run.metrics


def check_restart(run):
    """A run that broke off goes on from its first epoch: what came after that no longer counts, and stays in the journal."""
    journal, half = run.path / "journal.jsonl", STEPS // 2
    lines = journal.read_text().splitlines()
    last = [json.loads(line) for line in lines if '"event":"step"' in line][-1]
    kept = [line for line in lines if '"event":"end"' not in line]
    again = [{**last, "event": "resume", "step": half}, {**last, "loss": 7.25}]
    journal.write_text("\n".join([*kept, *map(json.dumps, again)]) + '\n{"v":1,"ev')
    assert run.steps["steps"].sum() == STEPS and run.steps["loss"].iloc[-1] == 7.25, run.steps
    assert last["loss"] in list(run.journal["loss"]) and last["loss"] not in list(run.steps["loss"])
    assert list(run.epochs["epoch"]) == [1] and list(run.metrics["step"]) == [half], (run.epochs, run.metrics)
    journal.write_text("\n".join(lines) + "\n")


def check_evaluation(run):
    found, shown = lockstep.evaluate(run), program("eval", str(run.path))
    confusion, classes = found.confusion, found.classes
    names = [row["name"] for row in shown["classes"]]
    assert list(confusion.index) == list(confusion.columns) == list(classes["name"]) == names and len(names) == CLASSES
    assert confusion.to_numpy().tolist() == shown["confusion"] and confusion.to_numpy().sum() == shown["samples"]
    assert abs(confusion.to_numpy().trace() / shown["samples"] - shown["top1"]) < 1e-9
    assert list(classes["recall"]) == [row["recall"] for row in shown["classes"]]
    assert list(classes["samples"]) == list(confusion.sum(axis=1)), (classes, confusion)


def check_answers(run):
    paths = sorted(map(str, pathlib.Path("set/validate").rglob("*.jpg")))[:3]
    pathlib.Path("torn.jpg").write_bytes(pathlib.Path(paths[0]).read_bytes()[:60])
    asked = [*paths, "torn.jpg"]  # together: how many there are decides the last bits
    said = {row["path"]: row for row in program("predict", str(run.path), *asked)["images"]}
    answers = run.predict(asked)
    for path in paths:
        rows = answers[answers["path"] == path]
        assert list(rows["name"]) == [one["name"] for one in said[path]["classes"]] and len(rows) == CLASSES, rows
        assert list(rows["probability"]) == [one["probability"] for one in said[path]["classes"]] == sorted(rows["probability"], reverse=True)
        assert abs(rows["probability"].sum() - 1) < 1e-5 and rows["error"].isna().all()
    torn = answers[answers["path"] == "torn.jpg"]
    assert len(torn) == 1 and torn["error"].notna().all() and torn["name"].isna().all(), torn
    assert len(lockstep.predict(run, paths, top=1)) == len(paths)
    one = Image.open(paths[0])
    one.save("same.png")
    assert list(run.predict(one)["probability"]) == list(run.predict("same.png")["probability"])
    whole = run.predict("set/validate", top=1)
    assert len(whole) == len(list(pathlib.Path("set/validate").rglob("*.jpg"))) == run.metrics["samples"].iloc[-1], len(whole)


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-frames-") as folder:
        os.chdir(folder)
        subprocess.run("lockstep prep --synthesize shapes --count 60 --classes 3 --image-size 32 --to set".split(), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run = lockstep.train(JOB, progress=False)
        for check in (check_run, check_restart, check_evaluation, check_answers):
            check(run)
            print(f"frames.py: {check.__name__[6:]} as the program has it")
        os.chdir("/")


if __name__ == "__main__":
    main()
