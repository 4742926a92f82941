#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: tune
"""Optuna opens our study while it runs and goes on with it; we go on with Optuna's; both write at once."""
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
SPACE = {
    "x": {"range": [-5, 10]},
    "lr": {"log": [1e-5, 1]},
    "n": {"range": [1, 12], "integer": True},
    "batch": {"log": [8, 512], "integer": True},
    "q": {"range": [0, 1], "step": 0.25},
    "o": {"choice": ["sgd", "adam", 3]},
    "m": {"range": [0, 0.99], "when": {"o": "sgd"}},
}
PROGRAM = ["sh", "-c", "echo 9; echo $0", "{x}"]
optuna.logging.set_verbosity(logging.ERROR)


def suggest(trial):
    x = trial.suggest_float("x", -5, 10)
    trial.suggest_float("lr", 1e-5, 1, log=True)
    trial.suggest_int("n", 1, 12)
    trial.suggest_int("batch", 8, 512, log=True)
    trial.suggest_float("q", 0, 1, step=0.25)
    if trial.suggest_categorical("o", ["sgd", "adam", 3]) == "sgd":
        trial.suggest_float("m", 0, 0.99)
    return x


def tune(folder, trials, *more, wait=True, sampler="tpe", scheduler="median"):
    study = folder / "study.json"
    study.write_text(json.dumps({"name": "s", "space": SPACE, "trials": trials, "sampler": sampler,
                                 "scheduler": scheduler, "startup": 200}))
    command = [BUILD / "bin/lockstep", "tune", study, "--to", folder / "s", "--here", "--workers", "2", *more, "--", *PROGRAM]
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL) if wait else subprocess.Popen(command, stdout=subprocess.DEVNULL)


def load(folder):
    return optuna.load_study(study_name="s", storage=JournalStorage(JournalFileBackend(str(folder / "s" / "study.log"))))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Ours, read by Optuna: every value inside its distribution, the objective, the learning curve.
        tune(folder, 12)
        study = load(folder)
        assert len(study.trials) == 12 and all(t.state == TrialState.COMPLETE for t in study.trials), study.trials
        for trial in study.trials:
            assert trial.value == trial.params["x"] and trial.intermediate_values == {1: 9.0, 2: trial.value}
            assert ("m" in trial.params) == (trial.params["o"] == "sgd")
            assert all(trial.distributions[k]._contains(trial.distributions[k].to_internal_repr(v)) for k, v in trial.params.items())
            assert trial.datetime_complete >= trial.datetime_start
        # Optuna goes on with it, and enqueues a trial for us; we go on.
        study.optimize(suggest, n_trials=5)
        study.enqueue_trial({"x": 7.5, "o": 3})
        tune(folder, 20)
        study = load(folder)
        assert len(study.trials) == 20 and all(t.state == TrialState.COMPLETE for t in study.trials)
        assert study.trials[17].params["x"] == 7.5 and study.trials[17].value == 7.5 and study.trials[17].params["o"] == 3
        # Both at once, on a file whose last line a kill has torn.
        with open(folder / "s" / "study.log", "ab") as log:
            log.write(b'{"op_code":4,"worker_id":"dead","stu')
        ours = tune(folder, 60, wait=False)
        while ours.poll() is None and len(load_quietly(folder)) < 25:
            pass
        study = load(folder)
        study.optimize(suggest, n_trials=15)
        assert ours.wait() == 0
        trials = load(folder).trials
        assert [t.number for t in trials] == list(range(len(trials))) and 60 <= len(trials) <= 75, len(trials)
        assert all(t.state == TrialState.COMPLETE and t.value == t.params["x"] for t in trials)
        # A study that Optuna began.
        other = pathlib.Path(name) / "theirs"
        (other / "s").mkdir(parents=True)
        begun = optuna.create_study(study_name="s", direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1),
                                    storage=JournalStorage(JournalFileBackend(str(other / "s" / "study.log"))))
        begun.optimize(suggest, n_trials=12)
        tune(other, 30)
        study = load(other)
        assert len(study.trials) == 30 and study.direction == optuna.study.StudyDirection.MAXIMIZE
        assert study.best_value == max(t.params["x"] for t in study.trials)
    print(f"optuna_journal: Optuna {optuna.__version__} and we share studies, {len(trials)} trials by both at once")


def load_quietly(folder):
    try:
        return load(folder).trials
    except (ValueError, KeyError):  # the torn line, until our first append has cut it off
        return []


if __name__ == "__main__":
    sys.exit(main())
