#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: spec
"""Holds `lockstep explain --schema` to the PyPI package jsonschema: the schema is valid, examples pass, bad jobs fail,
and schema and parser agree on each."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKSTEP = str(pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep")

GOOD = {"name": "a", "data": {"train": "t"}, "model": {"name": "m"}, "training": {"epochs": 2}}
# (where to put it, what): each makes GOOD bad.
BAD = [("training.global_batch", -5), ("training.global_batch", 0), ("training.global_batch", "8"),
       ("training.global_batch", 2.5), ("training.globl_batch", 8), ("training.precision", "fp8"),
       ("training.steps", 3), ("training.epochs", 0), ("training.epochs", None), ("training.phases", [{}]),
       ("training.label_smoothing", 1), ("training.optimizer", "sgd"), ("training.optimizer.lr", 0),
       ("data.mean", [0.5]), ("data.std", [0.1, 0.1, 0]), ("data.flip", 1), ("data.train", ""),
       ("limits.walltime", 48), ("limits.walltime", "48"), ("limits.walltime", "90:00"), ("name", ""), ("extra", 1)]
MORE_GOOD = [("limits.walltime", "2 h 30 min"), ("limits.walltime", "1-12:00:00"), ("training.steps", 0),
             ("training.phases", []), ("data.mean", [0, 0, 0]), ("training.optimizer.lr", 1), ("$schema", "x")]


GOOD_WORDS = {"limits.walltime": ["48:00:00", "1-12:00:00", "90 min", "2h30min", "1.5 d", "none", "12 hours", " 3 s "]}
BAD_WORDS = {"limits.walltime": ["48", "", "90:00", "1:75:00", "3 weeks", "-2 h", "min", "2 h 30"]}
MACHINE_GOOD = {"memory_per_node": ["12 GB", "16GiB", "1.5 kB", "3 B"], "links.inter.rate": ["12 GB/s", "100 Gbit/s"]}
MACHINE_BAD = {"memory_per_node": [128, "128", "12 gb", "GB", "-1 GB", ""], "links.inter.rate": ["7 GB", "7", "7 GB/h"],
               "scheduler.kind": ["lsf"], "nodes": [-1]}


def put(job, key, value):
    job = copy.deepcopy(job)
    at = job
    *way, last = key.split(".")
    for part in way:
        at = at.setdefault(part, {})
    at[last] = value
    return job


def explain(*words):
    return subprocess.run([LOCKSTEP, "explain", *words], capture_output=True, text=True)


def main():
    wrong = total = 0
    checkers = {}
    for kind in ("job", "machine", "project", "study", "workflow", "plan"):
        schema = json.loads(explain("--schema", kind).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        checkers[kind] = jsonschema.Draft202012Validator(schema)

    def check(what, kind, document, good):
        nonlocal wrong, total
        total += 1
        by_schema = checkers[kind].is_valid(document)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(document, file)
            file.flush()
            parsed = explain("--check", file.name, kind)
        resolved_ok = parsed.returncode != 0 or checkers[kind].is_valid(json.loads(parsed.stdout))
        if by_schema != good or (parsed.returncode == 0) != good or not resolved_ok:
            wrong += 1
            print(f"{what}: expected {'good' if good else 'bad'}; schema {by_schema}, parser exit {parsed.returncode}, "
                  f"resolved form valid {resolved_ok}")

    def check_all(kind, start, table, good):
        for key, values in table.items():
            for value in values:
                check(f"{kind} {key}={value!r}", kind, put(start, key, value), good)

    check("plain", "job", GOOD, True)
    bare = {"name": "a", "data": {"train": "t"}, "model": {"name": "m", "weights": "w"}}
    check("weights bring a recipe", "job", bare, True)
    check("no weights, no recipe", "job", put(bare, "model.weights", ""), False)
    check_all("job", GOOD, GOOD_WORDS, True)
    check_all("job", GOOD, BAD_WORDS, False)
    for key, value in BAD:
        check(f"{key}={value!r}", "job", put(GOOD, key, value), False)
    for key, value in MORE_GOOD:
        check(f"{key}={value!r}", "job", put(GOOD, key, value), True)
    for key in GOOD:
        check(f"without {key}", "job", {k: v for k, v in GOOD.items() if k != key}, False)
    machine = {"name": "m", "gpus_per_node": 4, "gpu": "k80", "memory_per_node": "128 GB",
               "links": {"inter": {"rate": "100 Gbit/s"}}}
    check("machine", "machine", machine, True)
    check_all("machine", machine, MACHINE_GOOD, True)
    check_all("machine", machine, MACHINE_BAD, False)

    study = {"space": {"training.optimizer.lr": {"log": [1e-4, 0.1]}, "o": {"choice": ["sgd", 2, True]}}, "trials": 5}
    check("study", "study", study, True)
    for key, value, good in [("o", {"choice": [[1]]}, False), ("o", {"choise": [1]}, False), ("x", {"range": [0, 1], "when": {"o": "sgd"}}, True),
                             ("x", {"range": ["0", 1]}, False), ("x", {"range": [0, 1], "log": [1, 2]}, False), ("x", 3, False)]:
        check(f"study {key}={value!r}", "study", {**study, "space": {**study["space"], key: value}}, good)

    stage = {"command": ["x"], "outputs": ["f"], "scaling": {"8": 205.4}}
    check("workflow", "workflow", {"stages": {"a": stage}}, True)
    for key, value, good in [("comand", ["x"], False), ("eval", ["y"], False), ("retries", -1, False), ("outputs", "f", True),
                             ("expected", "13 h", True), ("expected", 13, False), ("resources", {"gpus": 1.5}, False)]:
        check(f"workflow {key}={value!r}", "workflow", {"stages": {"a": {**stage, key: value}}}, good)

    plan = json.loads(subprocess.run([LOCKSTEP, "plan", str(ROOT / "examples/shapes.json"), "--on", "t4,mi100,i7-8700",
                                      "--samples", "1000", "--json", "-"], capture_output=True, text=True).stdout)
    check("plan", "plan", plan, True)
    check("plan without its parameters", "plan", {k: v for k, v in plan.items() if k != "parameters"}, False)
    for key, value, good in [("jobs", None, True), ("jobs", 1.5, False), ("cost", {}, True), ("cost", None, False),
                             ("step_seconds", None, True), ("step_seconds", {}, False), ("fits", None, False),
                             ("time_by_class", {"matmul": "1"}, False), ("gpuz", 1, False), ("last_cuda", None, True)]:
        changed = copy.deepcopy(plan)
        changed["options"][0][key] = value
        check(f"plan {key}={value!r}", "plan", changed, good)

    kinds = {"machine.json": "machine", "project.json": "project", "branin.json": "study", "regions.json": "study",
             "workflow.json": "workflow", "shapes_workflow.json": "workflow", "nowcast_workflow.json": "workflow"}
    unschemed = ("table.json", "beside.json")  # measured tables and figures: docs/formats
    examples = [p for p in sorted((ROOT / "examples").rglob("*.json")) if p.name not in unschemed]
    for path in examples:  # comments go through our own reader first
        kind = kinds.get(path.name, "job")
        resolved = explain("--check", str(path), kind)
        if resolved.returncode != 0 or not checkers[kind].is_valid(json.loads(resolved.stdout)):
            wrong += 1
            print(f"{path}: {resolved.stderr}")
    total += len(examples)
    print(f"schema: {total - wrong} of {total} documents accepted or refused alike by schema and parser")
    return 1 if wrong or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
