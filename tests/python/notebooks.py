#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes notebooks/*.ipynb on small data: notebooks.py [NAME...], by a Python that has nbclient and ipykernel, with lockstep
importable and on the PATH.

Each runs in a folder of its own. Behind its cell tagged "parameters" one is put that makes it small; nothing else is changed,
and every cell must run. Drawn shapes stand for photographs, as in tests/house/start_page.py.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import nbclient
import nbformat
import traitlets.config

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PHOTO_JOB = {"name": "one", "data": {"train": "photos", "image_size": 32, "threads": 1}, "model": {"name": "efficientnet_lite0"},
             "training": {"global_batch": 4, "steps": 1, "optimizer": {"lr": 0.01}}}


def lockstep(*words, folder):
    subprocess.run(["lockstep", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def draw_photos(folder):
    lockstep("prep", "--synthesize", "shapes", "--count", "40", "--classes", "2", "--image-size", "64", "--to", "drawn", folder=folder)
    (folder / "drawn/train").rename(folder / "photos")
    (folder / "one.json").write_text(json.dumps(PHOTO_JOB))
    lockstep("train", "one.json", "--run", "one", folder=folder)


# NAME: what makes it small, what must be there before, what some output must hold.
SMALL = {
    "newcomer": ({"PHOTOS": "photos", "WEIGHTS": "one/weights.safetensors", "SETTINGS": {"data.threads": 1}}, draw_photos,
                 ["top-1", "<iframe", "probability"]),
    "applicant": ({"ON": ["a100-80"], "GPUS": [1], "SETTINGS": {"model.name": "vit_tiny_patch16_224"}}, None,
                  ["a100-80", "weights", "<iframe"]),
    "minotauro": ({"TABLE": "lockstep-examples/documents/kitti/table.json", "SETTINGS": {"data.image_size": [320, 480]}}, None,
                  ["<iframe", "h200", "#SBATCH"]),
    "kitti": ({"COUNT": 40, "STEPS": 6}, None, ["<iframe", "moderate", "AP"]),
    "deepsim": ({"POINTS": 100}, None, ["<iframe", "rtx3090", "regions"]),
}


def text_of(notebook):
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            found += [output.get("text", ""), *(str(value) for value in output.get("data", {}).values())]
    return "\n".join(found)


def complaints(said):
    """A line `!lockstep ...` that fails raises nothing: it is known by its words (lockstep/base/error.cpp)."""
    plain = re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", said).replace("\r", "\n")  # as on a terminal, where a line may be written over
    return re.findall(r"^lockstep: (?:user error|machine error|bug): .*", plain, re.M)


def check_form(name, notebook):
    """As it is committed: no outputs, one cell of parameters, one that installs where lockstep is not there."""
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert sorted(tags) == ["install", "parameters"], f"{name}: tags {tags}"
    assert not text_of(notebook), f"{name}: commit it without outputs"
    assert all(cell.get("execution_count") is None for cell in notebook.cells), f"{name}: commit it without counts"


def execute(name):
    parameters, prepare, expected = SMALL[name]
    notebook = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4)
    check_form(name, notebook)
    at = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    words = "\n".join(f"{key} = {value!r}" for key, value in parameters.items())
    notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(words))
    with tempfile.TemporaryDirectory() as folder:
        if prepare:
            prepare(pathlib.Path(folder))
        # By sockets in the file system: the ports of this machine are every user's.
        kernel = traitlets.config.Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        nbclient.NotebookClient(notebook, config=kernel, timeout=600, resources={"metadata": {"path": folder}}).execute()
    said = text_of(notebook)
    failed = complaints(said)
    assert not failed, f"{name}: a command failed: {failed}"
    missing = [word for word in expected if word not in said]
    assert not missing, f"{name}: no output has {missing}\n{said[:3000]}"


def main():
    names = sys.argv[1:] or sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    wrong = 0
    for name in names:
        started = time.monotonic()
        try:
            execute(name)
        except Exception as error:  # the next one runs all the same
            wrong += 1
            print(f"WRONG {name}:", re.sub("\x1b\\[[0-9;]*m", "", str(error)), flush=True)
        print(f"{time.monotonic() - started:5.1f} s  {name}", flush=True)
    print(f"notebooks: {len(names) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
