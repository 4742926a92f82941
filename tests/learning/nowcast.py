#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A made-up radar learnt from its files by one command: nowcast.py [FOLDER].

`lockstep workflow run` takes 40 events of rain from Level II files over sequences, training and evaluation to the report. The
forecasts of a ConvLSTM for the last events, which it has never seen, are held against the two ways to forecast without learning:
better than persistence at every lead time, by the critical success index at 0.5 mm/h and by the squared error, and than
optical flow from 30 minutes on by the index. Run a second time, nothing of it is out of date.
"""
import json
import pathlib
import sys
import tempfile

from shared.lesson import program

lockstep = program()
JOB = {
    "name": "nowcast", "task": "nowcast",
    "nowcast": {"inputs": 5, "outputs": 12, "widths": [32, 32], "thresholds": [0.5, 2, 5], "scales": [5]},
    "data": {"train": "rain/train", "validate": "rain/validate", "image_size": 32},
    "model": {"name": "convlstm", "patch": 2},
    "training": {"global_batch": 8, "epochs": 16, "optimizer": {"name": "adamw", "lr": 0.003}, "schedule": {"name": "cosine", "warmup_epochs": 0.5},
                 "clip_norm": 1, "seed": 1},
    "evaluation": {"every_epochs": 4, "worst": 6},
}
SHOWN = (5, 10, 20, 30, 40, 50, 60)  # minutes


WORKFLOW = {
    "name": "nowcast",
    "stages": {
        "synthesize": {"prep": ["--synthesize", "radar", "--count", "1440", "--to", "{output}"], "outputs": ["world"]},
        "prep": {"prep": ["{input}", "--to", "{output}", "--grid", "32", "--cell", "4", "--stride", "2", "--validate", "0.1"],
                 "inputs": ["world"], "outputs": ["rain"]},
        "train": {"train": ["job.json", "--run", "run"], "inputs": ["rain"], "outputs": ["run/weights.safetensors"]},
        "eval": {"eval": ["run"], "inputs": ["run/weights.safetensors", "rain/validate"], "outputs": ["run/eval.json"]},
        "report": {"command": [lockstep.file, "report", "run"], "inputs": ["run/eval.json"], "outputs": ["run/report.html"]},
    },
}


def learn(folder):
    (folder / "job.json").write_text(json.dumps(JOB))
    (folder / "workflow.json").write_text(json.dumps(WORKFLOW))
    print(lockstep("workflow", "run", "workflow.json", cwd=folder))
    print(lockstep("workflow", "status", "workflow.json", cwd=folder))
    again = lockstep("workflow", "run", "workflow.json", cwd=folder)
    assert f"{len(WORKFLOW['stages'])} up to date" in again, again
    assert (folder / "run/report.html").read_text().count("data:image/png") >= JOB["evaluation"]["worst"]
    return json.loads((folder / "run/eval.json").read_text())


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else made)
        folder.mkdir(parents=True, exist_ok=True)
        found = learn(folder)
    network, still, flow = (found["methods"][name] for name in ("network", "persistence", "flow"))
    wrong = []
    for i, minutes in enumerate(found["minutes"]):
        if not (network["csi"][0][i] > still["csi"][0][i] and network["mse"][i] < still["mse"][i]):
            wrong.append(f"{minutes} min: no better than persistence")
        if minutes >= 30 and not network["csi"][0][i] > flow["csi"][0][i]:
            wrong.append(f"{minutes} min: no better than optical flow")
    print("\n".join(wrong) or f"better than persistence at every lead time, than optical flow from 30 minutes on ({found['samples']} sequences)")
    # The last line is what the row keeps.
    shown = [found["minutes"].index(one) for one in SHOWN]
    methods = {"ConvLSTM": network, "optical flow": flow, "persistence": still}
    table = [f"{name} " + " ".join(f"{method['csi'][0][i]:.3f}" for i in shown) for name, method in methods.items()]
    print(f"CSI at 0.5 mm/h after {', '.join(map(str, SHOWN))} minutes: {'; '.join(table)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
