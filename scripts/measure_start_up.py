#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run on processors takes beside its steps at its start: measure_start_up.py [NAME...] > results/start-up-cpu.json

Plans each job below for this machine and trains 6 steps of it by that plan, three times; a row has the start-up that the
run itself measured: from the start of its process to the end of its first step, a step's promised length left out. A processor
that the catalogue does not know gets a row made up for the plan: no rate of it enters the start-up but that of one step.
LOCKSTEP_BUILD (default build) has the program.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep"
JOBS = {  # network, pixels, batch
    "smallcnn-32": ("smallcnn", 32, 32), "resnet18-64": ("resnet18", 64, 4), "resnet50-64": ("resnet50", 64, 4),
    "resnet152-64": ("resnet152", 64, 2), "densenet121-64": ("densenet121", 64, 4), "googlenet-96": ("googlenet", 96, 4),
    "efficientnet_lite0-96": ("efficientnet_lite0", 96, 4), "vit_tiny-224": ("vit_tiny_patch16_224", 224, 2),
    "vit_base-224": ("vit_base_patch16_224", 224, 1),
}
STEPS, TIMES = 6, 3


def run(words, folder, environment):
    done = subprocess.run([LOCKSTEP, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    sys.exit("/proc/cpuinfo names no processor")


def main():
    rows = []
    with tempfile.TemporaryDirectory(prefix="lockstep-start-up-") as name:
        folder = pathlib.Path(name)
        made_up = {"id": "this-one", "name": processor(), "vendor": "any", "cores": os.cpu_count(), "threads": os.cpu_count(),
                   "vector": "avx2", "base_ghz": 2.5, "fp32_flops_per_cycle": 32, "bandwidth_gbs": 20, "tdp_w": 100,
                   "source": "made up", "date": "2026-11"}
        (folder / "rows").mkdir()
        (folder / "rows/cpus.json").write_text(json.dumps({"cpus": [made_up]}))
        environment = dict(os.environ, LOCKSTEP_CATALOGUE=str(folder / "rows"), OMP_NUM_THREADS="1")
        commit = run(["--version"], ROOT, environment).split("(")[-1].rstrip(")\n")
        for job in sys.argv[1:] or JOBS:
            network, pixels, batch = JOBS[job]
            document = {"name": job, "data": {"train": "synthetic", "samples": STEPS * batch, "image_size": pixels, "threads": 1},
                        "model": {"name": network, "classes": 10},
                        "training": {"global_batch": batch, "epochs": 1, "threads": 1}}
            (folder / "job.json").write_text(json.dumps(document))
            run(["plan", "job.json", "--on", "here", "--no-search", "--json", "plan.json"], folder, environment)
            for i in range(TIMES):
                run(["train", "job.json", "--plan", "plan.json", "--here", "--run", f"{job}-{i}"], folder, environment)
                events = [json.loads(line) for line in (folder / f"{job}-{i}/journal.jsonl").read_text().splitlines()]
                facts = {fact["what"]: fact for event in events if event["event"] == "promise" for fact in event["rows"]}
                fact = facts["start-up"]
                rows.append({"what": "start-up of a run on processors", "job": job, "model": network, "batch": batch,
                             "measured": fact["measured"], "peer": None,
                             "command": "scripts/measure_start_up.py", "commit": commit,
                             "machine": f"{processor()}, {os.cpu_count()} cores, other work beside it"})
                print(f"{job}: {fact['measured']:.2f} s", file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
