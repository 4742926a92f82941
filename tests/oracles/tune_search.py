#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: tune
"""TPE beats chance on standard functions with significance and is no worse than Optuna's; volumes lie in their intervals.

In `make test` Optuna's TPE is what results/tune.json recorded of it. tune_search.py --record [samplers] [partition] runs
both side by side, 20 seeds a function, and 100 seeds of every partition, and writes that file (about 10 minutes).
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
RESULTS = ROOT / "results" / "tune.json"
sys.path.insert(0, str(ROOT / "tests/faults"))
from supervised import commit, machine  # noqa: E402

FUNCTIONS = ["branin", "hartmann6", "rosenbrock5", "mixed"]
CASES = ["box-2", "box-5", "box-10", "spheres-2", "spheres-3", "spheres-5", "spheres-10", "slab-2", "slab-5", "slab-10", "slabs-2"]
TRIALS = 100


def probe(*words):
    return subprocess.run([BUILD / "bin" / "tune_probe", *map(str, words)], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def ours(sampler, function, seeds=20):
    return [float(line) for line in probe(sampler, function, TRIALS, seeds)]


def rank_test(a, b):
    """One-sided Mann-Whitney: the probability that a would be that much smaller than b by chance."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(a, b, alternative="less").pvalue)


def optunas(function, seeds=20):
    import logging

    import numpy as np
    import optuna

    optuna.logging.set_verbosity(logging.ERROR)
    a = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])
    p = np.array([[.1312, .1696, .5569, .0124, .8283, .5886], [.2329, .4135, .8307, .3736, .1004, .9991],
                  [.2348, .1451, .3522, .2883, .3047, .6650], [.4047, .8828, .8732, .5743, .1091, .0381]])
    c = np.array([1, 1.2, 3, 3.2])

    def objective(trial):
        if function == "branin":
            x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
            return (y - 5.1 * x * x / (4 * np.pi**2) + 5 * x / np.pi - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10
        if function == "hartmann6":
            x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(6)])
            return -float(c @ np.exp(-(a * (x - p) ** 2).sum(1)))
        if function == "rosenbrock5":
            x = np.array([trial.suggest_float(f"x{i}", -5, 10) for i in range(5)])
            return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())
        lr, m = trial.suggest_float("lr", 1e-5, 1, log=True), trial.suggest_float("m", 0, 0.99)
        n, batch = trial.suggest_int("n", 1, 12), trial.suggest_int("B", 8, 512, log=True)
        b, cost = {"sgd": (-1, 0), "adam": (-3, .3), "rmsprop": (-3.5, .8), "lamb": (-2, 1.5)}[trial.suggest_categorical("o", ["sgd", "adam", "rmsprop", "lamb"])]
        l = np.log2(batch / 64)
        return (np.log10(lr) - b - l / 6) ** 2 + 4 * (m - .9) ** 2 + ((n - 7) / 4) ** 2 + (l / 4) ** 2 + cost

    best = []
    for seed in range(1, seeds + 1):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=TRIALS)
        best.append(study.best_value)
    return best, optuna.__version__


def partition(case, seeds, first=1):
    rows = [json.loads(line) for line in probe("partition", case, seeds, first)]
    held = sum(all(region["low"] <= region["truth"] <= region["high"] for region in row["regions"]) for row in rows)
    smallest = min(range(len(rows[0]["regions"])), key=lambda i: rows[0]["regions"][i]["truth"])
    of_smallest = [row["regions"][smallest] for row in rows]
    return {
        "case": case, "seeds": seeds, "held": held, "smallest": of_smallest[0]["label"], "truth": of_smallest[0]["truth"],
        "estimate_by_truth": statistics.median(r["volume"] / r["truth"] for r in of_smallest),
        "published_by_truth": statistics.median(r["published"] / r["truth"] for r in of_smallest),
        "half_interval_by_truth": statistics.median((r["high"] - r["low"]) / 2 / r["truth"] for r in of_smallest),
        "evaluations": statistics.median(row["evaluations"] for row in rows),
    }


def measure_samplers():
    rows = []
    for function in FUNCTIONS:
        tpe, chance = ours("tpe", function), ours("random", function)
        theirs, version = optunas(function)
        rows.append({"function": function, "trials": TRIALS, "seeds": len(tpe), "tpe": tpe, "random": chance, "optuna_tpe": theirs,
                     "optuna": version, "p_tpe_below_random": rank_test(tpe, chance), "p_optuna_below_tpe": rank_test(theirs, tpe)})
        print(function, *(f"{name} {statistics.median(values):.4g}" for name, values in (("tpe", tpe), ("optuna", theirs), ("random", chance))),
              f"p {rows[-1]['p_tpe_below_random']:.2g}, optuna better p {rows[-1]['p_optuna_below_tpe']:.2g}", flush=True)
    return rows


def measure_partition():
    rows = []
    for case in CASES:
        rows.append(partition(case, 100))
        print(rows[-1], flush=True)
    return rows


def record(chosen):
    """Writes what was chosen and leaves the rest of the file as it is."""
    measured = {name: measure() for name, measure in (("samplers", measure_samplers), ("partition", measure_partition)) if name in chosen}
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, rows in measured.items():
        source = {"command": f"tests/oracles/tune_search.py --record {name}", "commit": commit(), "machine": machine()}
        known[name] = [{**source, **row} for row in rows]
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    return judge(measured.get("samplers", []), measured.get("partition", []))


def judge(samplers, volumes):
    wrong = []
    for row in samplers:
        if not row["p_tpe_below_random"] < 0.001:
            wrong.append(f"{row['function']}: TPE is not better than chance, p {row['p_tpe_below_random']:.3g}")
        if row["p_optuna_below_tpe"] < 0.01:
            wrong.append(f"{row['function']}: Optuna's TPE is better, p {row['p_optuna_below_tpe']:.3g}")
    for row in volumes:
        if row["held"] < 0.95 * row["seeds"]:
            wrong.append(f"{row['case']}: the intervals held {row['held']} of {row['seeds']} times")
    return wrong


def main():
    if "--record" in sys.argv:
        wrong = record({"samplers", "partition"} & set(sys.argv) or {"samplers", "partition"})
    else:
        recorded = {row["function"]: row for row in json.loads(RESULTS.read_text())["samplers"]}
        samplers = []
        for function in FUNCTIONS:
            tpe = ours("tpe", function)
            samplers.append({"function": function, "p_tpe_below_random": rank_test(tpe, ours("random", function)),
                             "p_optuna_below_tpe": rank_test(recorded[function]["optuna_tpe"], tpe)})
        wrong = judge(samplers, [])
        for case in ("box-5", "spheres-3", "slab-2"):
            row = partition(case, 5)
            if row["held"] < 4:
                wrong.append(f"{case}: the intervals held {row['held']} of 5 times")
    for line in wrong:
        print(line)
    print(f"tune_search: {len(FUNCTIONS)} functions, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
