#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers on one study, killed at any moment: no trial is lost or doubled, and the journal stays Optuna's.

kill_tune.py [TRIALS [WORKERS]], default 1000 by 8 processes; with --record writes results/tune_faults.json.
"""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
SPACE = {f"x{i}": {"range": [0, 1]} for i in range(4)}


def start(folder, study):
    return subprocess.Popen([BUILD / "bin/lockstep", "tune", study, "--to", folder / "s", "--here", "--workers", "1", "--",
                             "sh", "-c", "echo $0", "{x0}"], stdout=subprocess.DEVNULL, stderr=open(folder / "errors", "ab"))


def check(log, trials):
    """Replays the journal: every line is whole, every trial ended once, with its own value."""
    created, ended = [], collections.Counter()
    state = {}
    for line in log.read_text().splitlines():
        record = json.loads(line)
        if record["op_code"] == 4:
            created.append(record["params"]["x0"])
        if record["op_code"] == 6 and record["state"] == 1 and record["trial_id"] not in state:
            state[record["trial_id"]] = record["values"][0]
        if record["op_code"] == 6 and record["state"] != 0:
            ended[record["trial_id"]] += 1
    assert len(created) == trials, f"{len(created)} trials, wanted {trials}"
    assert sorted(state) == list(range(trials)), f"{trials - len(state)} trials are lost"
    assert set(ended.values()) == {1}, f"ended more than once: {[t for t, n in ended.items() if n > 1][:5]}"
    wrong = [t for t in range(trials) if abs(state[t] - created[t]) > 1e-9]
    assert not wrong, f"trials with another's value: {wrong[:5]}"
    assert len(set(created)) == trials, "two trials with the same values"


def check_by_optuna(log, trials):
    try:
        import optuna
    except ImportError:
        return "Optuna is not installed here"
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(log)))
    study = optuna.load_study(study_name="s", storage=storage)
    assert len(study.trials) == trials and all(t.state == optuna.trial.TrialState.COMPLETE for t in study.trials)
    return f"Optuna {optuna.__version__} reads all of them"


def main():
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    trials, workers = (numbers + [1000, 8][len(numbers):])[:2]
    chance, kills = random.Random(trials), 0
    most_kills = trials // 2  # where a worker's start takes as long as it lives, nobody would ever come to the end
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        study = folder / "study.json"
        study.write_text(json.dumps({"name": "s", "space": SPACE, "trials": trials}))
        begun = time.monotonic()
        running = [start(folder, study) for _ in range(workers)]
        while True:
            time.sleep(chance.uniform(0.02, 0.15))
            victim = chance.randrange(workers)
            if running[victim].poll() is None and kills < most_kills:
                running[victim].send_signal(signal.SIGKILL)
                running[victim].wait()
                kills += 1
            elif running[victim].returncode not in (None, 0, -9):
                sys.exit(f"a worker ended with {running[victim].returncode}: {(folder / 'errors').read_text()[-2000:]}")
            if any(each.poll() == 0 for each in running):
                break
            if running[victim].returncode is not None:
                running[victim] = start(folder, study)
        for each in running:
            assert each.wait(timeout=300) in (0, -9), each.returncode
        if any(each.returncode == 0 for each in running) is False:
            start(folder, study).wait()
        seconds = time.monotonic() - begun
        check(folder / "s" / "study.log", trials)
        said = check_by_optuna(folder / "s" / "study.log", trials)
    print(f"kill_tune: {trials} trials by {workers} workers, {kills} of them killed, {seconds:.0f} s: none lost, none doubled; {said}")
    print(f"faults injected: {kills}")
    if "--record" in sys.argv:
        row = {"command": "tests/faults/kill_tune.py --record", "trials": trials, "workers": workers, "kills": kills, "lost": 0,
               "doubled": 0, "seconds": round(seconds, 1), "optuna": said}
        path = ROOT / "results" / "tune_faults.json"
        path.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
