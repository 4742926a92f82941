#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What takes hours and no landing waits for: test_all.py [PART...], as `make test-all [PARTS="seeds soak"]`.

Every part of scripts/test_long.sh without its box, every file of tests/learning (a network learns to its target; seed
studies), the loader, the faults and the fuzzers for long, and the recipe on five folds of real photographs where PETS=DIR
names them. Each part that was run has its row in results/test_all.json: commit, date, seconds, outcome, its last line.
"""
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/faults"))
from supervised import commit, machine  # noqa: E402

ROWS = ROOT / "results/test_all.json"
PYTHON = "python3"  # as it stands in the rows
ORACLES = ".deps/oracles/bin/python"
SKIPPED = 77  # of a part that this machine cannot run, as in scripts/test_long.sh
# Of tests/learning: those that import what only that environment has.
BESIDE_OTHERS = ("loss_curves", "onnx_accuracy", "stamp_sentences", "tune")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # these two as in scripts/test.sh, which says why
os.environ.setdefault("LOCKSTEP_BUSY_CORES", "0")


def find_parts():
    """name -> command; the folder's own files, so that none is left out quietly."""
    parts = {path.stem: [PYTHON, str(path.relative_to(ROOT))] for path in sorted((ROOT / "tests/learning").glob("*.py"))}
    for name in BESIDE_OTHERS:
        parts[name] = ["bash", "-c", f"scripts/deps.sh oracles && {ORACLES} tests/learning/{name}.py"]
    parts["soak"] = [PYTHON, "tests/faults/loader_soak.py"]
    parts["serve-soak"] = [PYTHON, "tests/serve/soak.py", "--record"]
    parts["serve-speed"] = ["bash", "-c", f"scripts/deps.sh servers && {PYTHON} tests/serve/speed.py --record"]
    parts["dashboard"] = ["bash", "-c", f"scripts/deps.sh dashboard && {PYTHON} tests/house/dashboard.py"]
    parts["campaign"] = [PYTHON, "tests/faults/campaign.py", "1800"]
    parts["resumes"] = [PYTHON, "tests/faults/kill_resume.py", "1800"]
    # The recipes; the wheel from the source distribution, what it does in an empty environment, the notebooks; the pages.
    parts["wheel"] = ["bash", "-c", f"scripts/deps.sh test torch oracles python && {PYTHON} tests/house/packaging.py && {PYTHON} tests/python/wheel.py && make --no-print-directory site"]
    parts["planner-page"] = ["bash", "-c", f"scripts/deps.sh test zoo && make planner-page build && {PYTHON} tests/planner/page.py"]
    parts["study"] = ["tests/slurm/study.sh"]
    parts["fuzz"] = ["bash", "-c", "tests/fuzz/build.sh build/fuzz && FUZZ_SEED=0 tests/fuzz/run.sh 600 build/fuzz"]
    parts["long"] = ["env", f"SEED={random.randrange(1 << 30)}", "LONG_SECONDS=100000", "scripts/test_long.sh"]
    if "PETS" in os.environ:
        parts["pets"] = [PYTHON, "examples/pets/five_fold.py", os.environ["PETS"], "--out", "build/five_fold"]
    return parts


def run(command):
    """Exit code and the last line that it printed, which has its figures."""
    last = ""
    with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return process.returncode, last


def write_row(row):
    rows = json.loads(ROWS.read_text()) if ROWS.exists() else []
    rows = [other for other in rows if other["part"] != row["part"]] + [row]
    ROWS.write_text(json.dumps(sorted(rows, key=lambda one: one["part"]), indent=1) + "\n")


def run_parts(parts, chosen):
    """The number that failed. One that this machine cannot run keeps the row of a machine that could."""
    failed = skipped = 0
    for name in chosen:
        print(f"\n== {name}: {' '.join(parts[name])}", flush=True)
        started = time.monotonic()
        code, last = run(parts[name])
        if code == SKIPPED:
            skipped += 1
            print(f"skip  {name}: this machine cannot (see above)")
            continue
        failed += code != 0
        write_row({"part": name, "outcome": "passed" if code == 0 else f"exit code {code}", "figures": last,
                   "seconds": round(time.monotonic() - started), "command": " ".join(parts[name]), "commit": commit(),
                   "date": datetime.date.today().isoformat(), "machine": machine()})
    if "pets" not in parts:
        print("\nskip  pets: PETS=DIR is not set (images/ and annotations/ of the Oxford-IIIT Pet photographs)")
    print(f"test-all: {len(chosen) - failed - skipped} passed, {failed} failed, {skipped} skipped; rows in {ROWS.name}")
    return failed


def main():
    parts = find_parts()
    chosen = sys.argv[1:] or list(parts)
    for name in chosen:
        if name not in parts:
            sys.exit(f"test_all: there is no part '{name}'; there are: {' '.join(parts)}")
    built = subprocess.run(["make", "--no-print-directory", "build", "TARGET=all probes"], cwd=ROOT).returncode
    if built != 0:
        sys.exit("test_all: the build failed")
    return 1 if run_parts(parts, chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
