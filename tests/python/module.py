#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python module without what a notebook adds (pandas, tqdm): module.py, lockstep on the PATH, python/ on PYTHONPATH, in an
empty folder. What it gives is what the program gives; what the program refuses are exceptions with its words."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import lockstep
from lockstep import program, runs

JOB = {"name": "small", "data": {"train": "set/train", "validate": "set/validate", "image_size": 16},
       "model": {"name": "linear", "classes": 3}, "training": {"global_batch": 16, "epochs": 2}}


def refuses(kind, what, fix, call, *args, **more):
    try:
        call(*args, **more)
    except lockstep.LockstepError as error:
        assert isinstance(error, kind), error
        assert what in error.what and fix in error.fix, (error.what, error.fix)
        return error
    raise AssertionError(f"{call.__name__} did not refuse: {what}")


def check_light():
    """Importing is for every command of the wheel: nothing heavy."""
    seen = subprocess.run([sys.executable, "-c", "import lockstep, sys; print(*sys.modules)"], capture_output=True, text=True, check=True)
    heavy = {"torch", "pandas", "numpy", "tqdm"} & set(seen.stdout.split())
    assert not heavy, heavy


def check_plan():
    plan = lockstep.plan(JOB, on=["a100-80", "k40"], gpus=[1], settings={"training.seed": 1})
    asked = program.ask(["explain", "--check", "job.json"])
    assert plan.document["job"]["model"] == asked["model"] and plan.fits and "a100-80" in plan.headline, plan.headline
    assert "<iframe srcdoc=" in plan._repr_html_() and repr(plan).startswith("<lockstep.Plan: ")
    lockstep.plan("job.json", on="here").save("plan.json")
    giant = {**JOB, "model": {"name": "vit_giant_patch14_224", "classes": 3}, "data": {"train": "synthetic", "samples": 9}}
    assert not lockstep.plan(giant, on="k40", options=["--no-search"]).fits
    unknown = lockstep.plan({**JOB, "data": {"train": "nowhere", "image_size": 16}}, on="a100-80")._rows()
    assert unknown[0]["memory_gb"] > 0 and unknown[0]["run_h"] is None, unknown  # nobody says how many samples there are
    refuses(lockstep.UserError, "model.clases: unknown key", "did you mean 'classes'", lockstep.plan, {**JOB, "model": {"name": "linear", "clases": 3}})
    refuses(lockstep.UserError, "a job, or a recording", "lockstep.plan(", lockstep.plan)
    error = refuses(lockstep.UserError, "no GPU or machine 'a1000'", "did you mean", lockstep.plan, "job.json", on="a1000")
    assert error.exit_code == 2


def check_run():
    run = lockstep.train("job.json", progress=False, plan="plan.json")
    assert str(run.path) == "runs/small" and run.job["training"]["epochs"] == 2
    assert "<iframe" in run._repr_html_()
    result = lockstep.evaluate(run)
    shown = json.loads(subprocess.run(["lockstep", "eval", "runs/small", "--json", "-"], capture_output=True, check=True).stdout)
    assert result["top1"] == shown["top1"] and result.headline == shown["headline"]["text"]
    assert run.pictures and all(path.exists() for path in run.pictures)
    refuses(lockstep.UserError, "is no run folder", "lockstep.train", lockstep.Run, "nowhere")
    refuses(lockstep.UserError, "training.optimizer.lr", "", lockstep.train, "job.json", settings={"training.optimizer.lr": 0.5}, progress=False)


def check_stop():
    """Interrupting the cell saves; the same call goes on."""
    long = {**JOB, "name": "long", "training": {"global_batch": 16, "epochs": 1000}}

    def interrupt():
        while not os.path.exists("runs/long/journal.jsonl") or '"event":"step"' not in open("runs/long/journal.jsonl").read():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        lockstep.train(long, progress=False)
        raise AssertionError("was not interrupted")
    except KeyboardInterrupt:
        pass
    events = [json.loads(line) for line in open("runs/long/journal.jsonl")]
    stopped = [event for event in events if event["event"] == "stop"]
    assert stopped and stopped[0]["reason"] == "Ctrl-C", stopped
    lockstep.train(long, progress=False)
    events = [json.loads(line) for line in open("runs/long/journal.jsonl")]
    assert [event["step"] for event in events if event["event"] == "resume"] == [stopped[0]["step"]]
    assert events[-1]["event"] == "end"


def check_answers():
    assert runs._answer_rows({"path": "a.jpg", "classes": [{"name": "cat"}, {"name": "dog"}]}) == \
        [{"path": "a.jpg", "name": "cat"}, {"path": "a.jpg", "name": "dog"}]
    rain = {"path": "strip.png", "minutes": [5, 10], "rain_area": [0.25, 0.5]}
    assert runs._answer_rows(rain) == [rain]
    assert runs._answer_rows({"path": "b.jpg", "objects": []}) == [{"path": "b.jpg"}]


def check_errors():
    error = program.error_of(3, "2026 step\nlockstep: machine error: no disk\n  fix: df -h\n")
    assert isinstance(error, lockstep.MachineError) and (error.what, error.fix, error.exit_code) == ("no disk", "df -h", 3)
    assert isinstance(program.error_of(85, "said"), lockstep.Stopped) and "goes on" in program.error_of(85, "").fix
    assert isinstance(program.error_of(4, "lockstep: bug: x"), lockstep.BugError)
    os.environ["PATH"], path = "/nowhere", os.environ["PATH"]
    refuses(lockstep.MachineError, "'lockstep' is not there", "pip install", lockstep.evaluate, "runs/small")
    os.environ["PATH"] = path


def main():
    subprocess.run("lockstep prep --synthesize shapes --count 60 --classes 3 --image-size 32 --to set".split(), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open("job.json", "w") as file:
        json.dump(JOB, file)
    checks = [check_light, check_plan, check_run, check_stop, check_answers, check_errors]
    for check in checks:
        check()
    print(f"module: {len(checks)} passed")


if __name__ == "__main__":
    main()
