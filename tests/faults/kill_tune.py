#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers on one study, killed at any moment: no trial is lost or doubled, and the journal stays Optuna's.

kill_tune.py [TRIALS [WORKERS]], default 1000 by 8 processes; then a fifth as many under asha, whose trials are paused and
promoted: none is promoted twice, none of the best is left behind. With --record writes results/tune_faults.json.
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

from supervised import commit, machine

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
SPACE = {f"x{i}": {"range": [0, 1]} for i in range(4)}
FACTOR, RUNGS = 4, (1, 4)
PROGRAMS = {"none": "echo $0", "asha": "for i in 1 2 3 4 5 6; do echo $0; sleep 0.02; done"}


def start(folder, study, scheduler):
    return subprocess.Popen([BUILD / "bin/lockstep", "tune", study, "--to", folder / "s", "--here", "--workers", "1", "--",
                             "sh", "-c", PROGRAMS[scheduler], "{x0}"], stdout=subprocess.DEVNULL, stderr=open(folder / "errors", "ab"))


def check(log, trials, scheduler):
    """Replays the journal: every line is whole, every trial ended once, with its own value."""
    created, ended = [], collections.Counter()
    state = {}
    for line in log.read_text().splitlines():
        record = json.loads(line)
        if record["op_code"] == 4:
            created.append(record["params"]["x0"])
        if record["op_code"] == 6 and record["state"] in (1, 2) and record["trial_id"] not in state:
            assert record["state"] == 1 or scheduler == "asha", f"pruned: {record}"
            state[record["trial_id"]] = record["values"][0]
        if record["op_code"] == 6 and record["state"] != 0:
            ended[record["trial_id"]] += 1
    assert len(created) == trials, f"{len(created)} trials, wanted {trials}"
    assert sorted(state) == list(range(trials)), f"{trials - len(state)} trials are lost"
    assert set(ended.values()) == {1}, f"ended more than once: {[t for t, n in ended.items() if n > 1][:5]}"
    wrong = [t for t in range(trials) if abs(state[t] - created[t]) > 1e-9]
    assert not wrong, f"trials with another's value: {wrong[:5]}"
    assert len(set(created)) == trials, "two trials with the same values"


def check_promotions(log):
    """A trial is promoted only from a pause, while it is nobody's; at the end the best of every rung have gone on."""
    worker, paused, complete, promotions = {}, collections.defaultdict(bool), set(), 0
    reached = collections.defaultdict(dict)
    for line in log.read_text().splitlines():
        record = json.loads(line)
        trial = record.get("trial_id")
        if record["op_code"] == 4:
            worker[len(worker)] = record["system_attrs"]["lockstep:worker"]
        elif record["op_code"] == 6 and record["state"] == 1:
            complete.add(trial)
        elif record["op_code"] == 7:
            for rung in RUNGS:
                if record["step"] >= rung:
                    reached[rung].setdefault(trial, record["intermediate_value"])
        elif record["op_code"] == 9 and "lockstep:worker" in record["system_attr"]:
            new = record["system_attr"]["lockstep:worker"]
            assert not (new and paused[trial] and worker[trial]), f"trial {trial} was promoted by two"
            worker[trial] = new
        elif record["op_code"] == 9 and "lockstep:paused" in record["system_attr"]:
            goes_on = not record["system_attr"]["lockstep:paused"]
            assert goes_on == paused[trial] and worker[trial] == record["worker_id"], f"line {line}"
            paused[trial] = not goes_on
            promotions += goes_on
    for rung, there in list(reached.items()):
        best = sorted(there, key=lambda trial: (there[trial], trial))[:max(FACTOR, len(there) // FACTOR)]
        left = [trial for trial in best if trial not in complete and trial not in reached.get(rung * FACTOR, {})]
        assert not left, f"left behind at rung {rung}: {left}"
    assert promotions > 0, "nothing was promoted"
    return promotions


def check_by_optuna(log, trials):
    try:
        import optuna
    except ImportError:
        return "Optuna is not installed here"
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(log)))
    study = optuna.load_study(study_name="s", storage=storage)
    assert len(study.trials) == trials and all(t.state.is_finished() and t.value is not None for t in study.trials)
    return f"Optuna {optuna.__version__} reads all of them"


def run(trials, workers, scheduler):
    chance, kills = random.Random(trials), 0
    most_kills = trials // 2  # where a worker's start takes as long as it lives, nobody would ever come to the end
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        study = folder / "study.json"
        sampler = "random" if scheduler == "asha" else "tpe"  # what TPE draws late is the best, and never paused
        study.write_text(json.dumps({"name": "s", "space": SPACE, "trials": trials, "sampler": sampler, "scheduler": scheduler, "asha": {"factor": FACTOR}}))
        begun = time.monotonic()
        running = [start(folder, study, scheduler) for _ in range(workers)]
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
                running[victim] = start(folder, study, scheduler)
        for each in running:
            assert each.wait(timeout=300) in (0, -9), each.returncode
        if any(each.returncode == 0 for each in running) is False:
            start(folder, study, scheduler).wait()
        seconds = time.monotonic() - begun
        check(folder / "s" / "study.log", trials, scheduler)
        row = {"trials": trials, "workers": workers, "kills": kills, "lost": 0, "doubled": 0, "seconds": round(seconds, 1),
               "optuna": check_by_optuna(folder / "s" / "study.log", trials)}
        if scheduler == "asha":
            row["promotions"] = check_promotions(folder / "s" / "study.log")
    print(f"kill_tune: scheduler {scheduler}, {row}: none lost, none doubled", flush=True)
    return row


def main():
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    trials, workers = (numbers + [1000, 8][len(numbers):])[:2]
    row = {"command": "tests/faults/kill_tune.py --record", "commit": commit(), "machine": machine(),
           **run(trials, workers, "none"), "asha": run(max(20, trials // 5), workers, "asha")}
    print(f"faults injected: {row['kills'] + row['asha']['kills']}")
    if "--record" in sys.argv:
        path = ROOT / "results" / "tune_faults.json"
        path.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
