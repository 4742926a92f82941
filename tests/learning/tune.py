#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tuning finds and what it costs: tune.py [asha] [tpe] [overhead] [speedup] [--record], default all.

asha      ASHA finds as good a training as random search for at most a third of its training: real trainings, three seeds
tpe       TPE finds a better training than chance, 20 seeds, and is no worse than Optuna's TPE (which .deps/oracles has)
overhead  less than 20 ms a trial beside the program itself, of CPU and by the clock, in a study of 10,000 trials of 8 parameters
speedup   partitioning on 2 cores is at least 1.9 times as fast as on 1, for a simulation of 50 ms

All parts are measured, and with --record written down, before any is judged: one that falls short hides no other.
"""
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = BUILD / "bin" / "lockstep"
ORACLES = ROOT / ".deps/oracles/bin/python"
sys.path += [str(ROOT / "tests/faults"), str(ROOT / "tests/oracles")]
import tune_search  # noqa: E402
from supervised import commit, machine  # noqa: E402

ENVIRONMENT = {**os.environ, "LOCKSTEP_BUSY_CORES": "0", "ONEDNN_MAX_CPU_ISA": os.environ.get("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")}
SPACE = {"training.optimizer.lr": {"log": [1e-4, 1]}, "training.optimizer.momentum": {"range": [0, 0.99]},
         "training.optimizer.weight_decay": {"log": [1e-6, 1e-2]}, "training.label_smoothing": {"range": [0, 0.2]}}


def lockstep(folder, *words):
    done = subprocess.run([LOCKSTEP, *map(str, words)], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"lockstep {' '.join(map(str, words))}: {done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout


def epochs_trained(folder, study):
    """Of all trials: what they cost, whoever else was busy meanwhile."""
    last = {}
    for line in (folder / "studies" / study / "study.log").read_text().splitlines():
        record = json.loads(line)
        if record["op_code"] == 7:
            last[record["trial_id"]] = max(last.get(record["trial_id"], 0), record["step"])
    return sum(last.values())


def asha(folder, seeds=(1, 2, 3), epochs=64):
    """Random search trains 20 trials to their end. ASHA, of the same settings and 20 more, stops most of them early. Both
    run at the same time with a worker each, so that both share the machine and no trial is drawn before the one before it has
    ended. Random search is then the same whenever it is run; ASHA's trials get further now and then before they have stopped."""
    lockstep(folder, "prep", "--synthesize", "shapes", "--count", 640, "--classes", 10, "--image-size", 32, "--validate", 0.5, "--to", "shapes")
    job = {"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 32, "threads": 1}, "model": {"name": "smallcnn", "width": 8},
           "training": {"global_batch": 32, "epochs": epochs, "threads": 1}, "checkpoint": {"every_epochs": epochs}, "evaluation": {"every_epochs": 2}}
    (folder / "job.json").write_text(json.dumps(job))
    trials = {"none": 20, "asha": 40}
    figures = {name: {"best": [], "node_hours": [], "epochs": []} for name in trials}
    for seed in seeds:
        running = {}
        for name, count in trials.items():
            study = {"name": f"{name}{seed}", "job": "job.json", "sampler": "random", "scheduler": name, "trials": count, "seed": seed, "asha": {"first": 2, "factor": 4},
                     "space": SPACE}
            (folder / f"{name}{seed}.json").write_text(json.dumps(study))
            words = [LOCKSTEP, "tune", f"{name}{seed}.json", "--no-plan", "--here", "--workers", "1", "--json", "-"]
            running[name] = subprocess.Popen(words, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name, process in running.items():
            found = json.loads(process.communicate()[0])
            assert process.returncode == 0, f"{name}, seed {seed}: {process.returncode}"
            figures[name]["best"].append(found["best"]["value"])
            figures[name]["node_hours"].append(found["node_hours"])
            figures[name]["epochs"].append(epochs_trained(folder, f"{name}{seed}"))
        print(f"asha: seed {seed}, " + "; ".join(f"{name} {each['best'][-1]:.4f}, {each['epochs'][-1]} epochs, {each['node_hours'][-1]:.4f} node-hours"
                                                for name, each in figures.items()), flush=True)
    share = {what: sum(figures["asha"][what]) / sum(figures["none"][what]) for what in ("epochs", "node_hours")}
    row = {"trials": trials, "epochs_of_a_trial": epochs, "seeds": len(seeds), "random": figures["none"], "asha": figures["asha"],
           "share_of_epochs": share["epochs"], "share_of_node_hours": share["node_hours"]}
    print(f"asha: {row}", flush=True)
    return row


def judge_asha(row):
    best, others = sum(row["asha"]["best"]), sum(row["random"]["best"])
    if best < others:
        yield f"ASHA's best are worse: {best / row['seeds']:.4f} on average against {others / row['seeds']:.4f}"
    if row["share_of_epochs"] > 1 / 3:
        yield f"ASHA trained {row['share_of_epochs']:.2f} of the epochs"


BATCH = {"training.global_batch": {"choice": [16, 32, 64, 128]}}


def best_of_ours(folder, sampler, seed, trials):
    study = {"name": f"{sampler}{seed}", "job": "job.json", "sampler": sampler, "trials": trials, "seed": seed, "objective": "loss", "space": SPACE | BATCH}
    (folder / f"{sampler}{seed}.json").write_text(json.dumps(study))
    found = json.loads(lockstep(folder, "tune", f"{sampler}{seed}.json", "--no-plan", "--here", "--workers", 1, "--json", "-"))
    assert found["complete"] + found["failed"] == trials, found
    return found["best"]["value"], found["failed"], found["best"]["settings"]


def loss_of(folder, name, settings):
    """On the validation images, of one training; None: it came to no finite one."""
    words = [LOCKSTEP, "train", "job.json", "--run", name, "--here"] + [word for key, value in settings.items() for word in ("--set", f"{key}={value!r}")]
    done = subprocess.run(words, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 or "no finite loss" in done.stderr, done.stderr[-3000:]
    events = [json.loads(line) for line in (folder / name / "journal.jsonl").read_text().splitlines()]
    return min((event["loss"] for event in events if event["event"] == "evaluate" and event["loss"] is not None), default=None)


def best_of_optuna(folder, seed, trials):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {}
    for key, said in (SPACE | BATCH).items():
        (kind, values), = said.items()
        space[key] = optuna.distributions.CategoricalDistribution(values) if kind == "choice" else optuna.distributions.FloatDistribution(*values, log=kind == "log")
    study, failed = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed)), 0
    for number in range(trials):
        trial = study.ask(space)
        loss = loss_of(folder, f"optuna{seed}-{number}", trial.params)
        failed += loss is None
        study.tell(trial, loss, None if loss is not None else optuna.trial.TrialState.FAIL)
    return study.best_value, failed


def tpe(folder, trials=40, seeds=20):
    """The training is the same function of its settings for all three, to the last bit: with one thread, and a seed of its own."""
    import optuna

    lockstep(folder, "prep", "--synthesize", "shapes", "--count", 1280, "--classes", 10, "--image-size", 16, "--validate", 0.5, "--to", "shapes")
    job = {"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 16, "threads": 1}, "model": {"name": "smallcnn", "width": 8},
           "training": {"epochs": 2, "threads": 1}, "checkpoint": {"every_epochs": 2}, "evaluation": {"every_epochs": 2}}
    (folder / "job.json").write_text(json.dumps(job))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        begun = [(pool.submit(best_of_ours, folder, "random", seed, trials), pool.submit(best_of_ours, folder, "tpe", seed, trials),
                  pool.submit(best_of_optuna, folder, seed, trials)) for seed in range(1, seeds + 1)]
        found = {name: [] for name in ("random", "tpe", "optuna_tpe")}
        for seed, searches in enumerate(begun, 1):
            for name, search in zip(found, searches):
                found[name].append(search.result())
            print(f"tpe: seed {seed}, " + ", ".join(f"{name} {each[-1][0]:.4f}" for name, each in found.items()), flush=True)
    loss, _, settings = found["tpe"][0]
    again = loss_of(folder, "again", settings)
    assert again == loss, f"the same settings gave {loss} and {again}"
    best = {name: [each[0] for each in rows] for name, rows in found.items()}
    row = {"trials": trials, "seeds": seeds, "job": job, "space": SPACE | BATCH, **best, "failed": {name: sum(each[1] for each in rows) for name, rows in found.items()},
           "optuna": optuna.__version__, "p_tpe_below_random": tune_search.rank_test(best["tpe"], best["random"]),
           "p_optuna_below_tpe": tune_search.rank_test(best["optuna_tpe"], best["tpe"])}
    print("tpe: medians " + ", ".join(f"{name} {statistics.median(each):.4f}" for name, each in best.items()) + f", {row}", flush=True)
    return row


def judge_tpe(row):
    return tune_search.judge([{"function": "loss of a training", **row}], [])


def overhead(folder, trials=10000, last=1000):
    """Of the last thousand, by TPE; those before, by chance, are there to be looked at."""
    space = {f"x{i}": {"range": [0, 1]} for i in range(6)} | {"lr": {"log": [1e-5, 1]}, "o": {"choice": ["a", "b", "c"]}}
    (folder / "many.json").write_text(json.dumps({"name": "many", "space": space}))

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime, time.monotonic()

    def seconds(work):
        before = spent()
        work()
        return [after - start for after, start in zip(spent(), before)]

    def study(count, sampler):
        lockstep(folder, "tune", "many.json", "--set", f"trials={count}", "--set", f"sampler={sampler}", "--workers", 1, "--here", "--", "/bin/echo", "{x0}")
    bare = seconds(lambda: [subprocess.run(["/bin/echo", "1"], stdout=subprocess.DEVNULL) for _ in range(200)])
    study(trials - last, "random")
    loaded = seconds(lambda: study(trials - last, "tpe"))  # reads the journal, and has nothing to do
    cpu, wall = ((whole - start) / last - one / 200 for whole, start, one in zip(seconds(lambda: study(trials, "tpe")), loaded, bare))
    row = {"trials": trials, "cpu_ms": 1e3 * cpu, "wall_ms": 1e3 * wall, "load_seconds": loaded[0]}
    print(f"overhead: {row}", flush=True)
    return row


def judge_overhead(row):
    if row["cpu_ms"] >= 20 or row["wall_ms"] >= 20:
        yield f"{row['cpu_ms']:.1f} ms of CPU a trial, {row['wall_ms']:.1f} ms by the clock"


SIMULATION = """
import sys, time
for line in sys.stdin:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    print("low" if float(line.split()[0]) < 0.5 else "high", flush=True)
"""


def speedup(folder):
    space = {"a": {"range": [0, 1]}, "b": {"range": [0, 1]}}
    (folder / "p.json").write_text(json.dumps({"name": "p", "space": space, "partition": {"starts": 128, "chains": 16, "points": 300}}))
    # It stays, and works: two that only sleep are twice as fast on one core too.
    program = [sys.executable, "-c", SIMULATION]
    seconds, results = {}, {}
    for workers in (1, 2):
        begun = time.monotonic()
        lockstep(folder, "tune", "--partition", "p.json", "--to", f"p{workers}", "--workers", workers, "--here", "--", *program)
        seconds[workers] = time.monotonic() - begun
        results[workers] = json.loads((folder / f"p{workers}" / "partition.json").read_text())
    assert results[1] == results[2], "the result depends on the number of workers"
    row = {"simulation_seconds": 0.05, "evaluations": results[1]["evaluations"], "seconds": seconds, "speedup": seconds[1] / seconds[2]}
    print(f"speedup: {row}", flush=True)
    return row


def judge_speedup(row):
    if row["speedup"] < 1.9:
        yield f"2 cores are {row['speedup']:.2f} times as fast as 1"


def main():
    parts = {"asha": (asha, judge_asha), "tpe": (tpe, judge_tpe), "overhead": (overhead, judge_overhead), "speedup": (speedup, judge_speedup)}
    short = []
    chosen = [word for word in sys.argv[1:] if word in parts] or list(parts)
    if "tpe" in chosen and not importlib.util.find_spec("optuna"):
        os.execv(ORACLES, [str(ORACLES), *sys.argv])
    path = ROOT / "results" / "tune.json"
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            row = parts[name][0](pathlib.Path(folder))
        short += [f"{name}: {words}" for words in parts[name][1](row)]
        if "--record" in sys.argv:
            known = json.loads(path.read_text()) if path.exists() else {}
            known[name] = {"command": f"tests/learning/tune.py {name} --record", "commit": commit(), "machine": machine(), **row}
            path.write_text(json.dumps(known, indent=1) + "\n")
    assert not short, "; ".join(short)


if __name__ == "__main__":
    main()
