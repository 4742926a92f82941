#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: model onnx
"""Holds exported networks against onnxruntime: onnx.py [NAME...|all], default one network a family

`lockstep export` of lively random weights must give, in onnxruntime, the outputs of the network itself to 1e-4 of the
largest (or of 1), for batches of 1 and 3; the onnx package's checker must take the file. With --fp16 the file must be
about half as large, and its outputs stay within 5 % of the largest; with --preprocess bytes must give what normalised
images give. "all" is every network that the program knows: one with a new name is tried like the others, with
its own settings below or those of all. The probe is build/bin/onnx_torch_probe (or $LOCKSTEP_BUILD/bin/...).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if pathlib.Path(path or ".").resolve() != HERE]  # `import onnx` is not this file
import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", HERE.parents[1] / "build")).resolve()
BATCH, CLASSES, BOUND = 3, 7, 1e-4
HALF_BOUND = 5e-2  # random networks amplify rounding, that of fp32 too: MobileNetV2 two hundred times
SMOKE = ["linear", "mlp", "smallcnn", "resnet18", "densenet121", "googlenet", "squeezenet1_1", "vit_tiny_patch16_224", "efficientnet_lite0",
         "mobilenet_v2", "convnext_tiny", "fastbox_resnet18", "fcdensenet56", "convlstm", "rainnet"]
HALVED = ["resnet18", "vit_tiny_patch16_224"]  # of the default; of names that are given every one
SIZES = {"efficientnet_lite0": 75, "mobilenet_v2": 75, "convnext_tiny": 75, "fastbox": [64, 96], "vit_huge": 56,
         "vit_giant": 56, "mlp": 32, "linear": [24, 40], "fcdensenet": [44, 70], "convlstm": [24, 36], "rainnet": [32, 48]}  # uneven ones where a network pads or pools; by how names begin
SETTINGS = {"vit_giant": {"depth": 4}, "convlstm": {"patch": 2}, "rainnet": {"width": 8}}  # all of the first takes 8 GB
TASKS = {"fastbox": "detect", "fcdensenet": "segment", "convlstm": "nowcast", "rainnet": "nowcast"}


def for_name(table, name, otherwise):
    return next((value for key, value in table.items() if name.startswith(key)), otherwise)


def job_for(name, **more):
    job = {"name": "zoo", "data": {"train": "synthetic", "samples": 2, "image_size": for_name(SIZES, name, 64)},
           "model": {"name": name, "classes": CLASSES, **for_name(SETTINGS, name, {})},
           "training": {"global_batch": 2, "steps": 1}, **more}
    job["task"] = more.get("task", for_name(TASKS, name, "classify"))
    if job["task"] in ("detect", "nowcast"):
        del job["model"]["classes"]
    if job["task"] == "nowcast":
        job["nowcast"] = {"inputs": 3, "outputs": 4, "widths": [32, 16]}
    return job


class Probe:
    def __init__(self):
        self.process = subprocess.Popen([str(BUILD / "bin/onnx_torch_probe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply


def export(folder, to, *words):
    done = subprocess.run([str(BUILD / "bin/lockstep"), "export", "weights.safetensors", "--job", "job.json", "--to", to, *words],
                          cwd=folder, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stderr}")
    return folder / to


def session_of(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def error_of(session, images, expected):
    """The largest difference over all outputs and both batches, as a share of the largest value or of 1."""
    worst = 0.0
    for batch in (1, BATCH):
        for output, found in zip(session.get_outputs(), session.run(None, {session.get_inputs()[0].name: images[:batch]})):
            wanted = expected[output.name][:batch]
            if found.shape != wanted.shape or not numpy.isfinite(found).all():
                raise RuntimeError(f"{output.name}: {found.shape} instead of {wanted.shape}, or not finite")
            worst = max(worst, float(numpy.abs(found - wanted).max() / max(1.0, numpy.abs(wanted).max())))
    return worst


def size_of(file):
    beside = file.with_name(file.name + ".data")
    return file.stat().st_size + (beside.stat().st_size if beside.exists() else 0)


def compare(probe, folder, job, halved):
    """Returns figures for people; RuntimeError: what went wrong."""
    (folder / "job.json").write_text(json.dumps(job))
    probe.ask({"job": job, "batch": BATCH, "weights": str(folder / "weights.safetensors"),
               "out": str(folder / "out.safetensors")})
    found = load_file(folder / "out.safetensors")
    images = found.pop("input")
    expected = {name.removeprefix("output."): value for name, value in found.items()}
    if any(numpy.abs(value - value[:1]).max() < 1e-3 for value in expected.values()):
        raise RuntimeError("the outputs hardly depend on the image: nothing would be compared")
    whole = export(folder, "whole.onnx", "--licence", "CC0")
    onnx.checker.check_model(str(whole), full_check=size_of(whole) < 500_000_000)  # whose shapes take as long as a network
    session = session_of(whole)
    if {output.name for output in session.get_outputs()} != set(expected):
        raise RuntimeError(f"outputs {[output.name for output in session.get_outputs()]} instead of {list(expected)}")
    said = session.get_modelmeta().custom_metadata_map
    if said["lockstep.task"] != job.get("task", "classify") or said["lockstep.licence"] != "CC0":
        raise RuntimeError(f"metadata: {said}")
    error = error_of(session, images, expected)
    figures = f"{error:.1e}, {size_of(whole) / 1e6:.1f} MB"
    if error > BOUND:
        raise RuntimeError(f"differs by {error:.1e}, allowed {BOUND:.0e}")
    del session
    if halved:
        half = export(folder, "half.onnx", "--fp16")
        error, share = error_of(session_of(half), images, expected), size_of(half) / size_of(whole)
        figures += f"; fp16 {error:.1e}, {share:.2f} of the size"
        if error > HALF_BOUND or share > 0.62:
            raise RuntimeError(f"fp16 differs by {error:.1e}, and has {share:.2f} of the size")
    for file in folder.glob("*.onnx*"):
        file.unlink()
    return figures


def preprocessed(probe, folder):
    """Bytes into one graph, normalised numbers into the other."""
    job = job_for("smallcnn")
    job["data"] |= {"image_size": [24, 40], "mean": [0.1, 0.2, 0.3], "std": [0.5, 0.4, 0.3]}
    (folder / "job.json").write_text(json.dumps(job))
    probe.ask({"job": job, "batch": 1, "weights": str(folder / "weights.safetensors"), "out": str(folder / "out.safetensors")})
    pixels = numpy.random.default_rng(1).integers(0, 256, (BATCH, 24, 40, 3), dtype=numpy.uint8)
    shown = (pixels / 255 - [0.1, 0.2, 0.3]) / [0.5, 0.4, 0.3]
    outside = session_of(export(folder, "a.onnx")).run(None, {"image": shown.transpose(0, 3, 1, 2).astype(numpy.float32)})[0]
    inside = session_of(export(folder, "b.onnx", "--preprocess")).run(None, {"image": pixels})[0]
    error = float(numpy.abs(inside - outside).max() / max(1.0, numpy.abs(outside).max()))
    if error > BOUND:
        raise RuntimeError(f"differs by {error:.1e}")
    return f"{error:.1e}"


def cases(probe, chosen):
    """(title, function that gives figures)"""
    known = probe.ask({"names": True})["names"]
    others = ("rcnn", "attend_", "hashed_")  # are refused: they choose among their own regions, search for words, or take none but ours
    exported = [name for name in known if not any(part in name for part in others)]
    names = exported if chosen == ["all"] else chosen or SMOKE
    for name in names:
        halved = bool(chosen) or name in HALVED
        yield name, lambda folder, name=name, halved=halved: compare(probe, folder, job_for(name), halved)
    if chosen and chosen != ["all"]:
        return
    yield "bytes", lambda folder: preprocessed(probe, folder)
    for task in ("ordinal", "regress", "multilabel"):
        more = {"multilabel": {"classes": ["a", "b", "c"]}} if task == "multilabel" else {}
        job = job_for("smallcnn", task=task, **more)
        if task != "ordinal":
            del job["model"]["classes"]
        yield task, lambda folder, job=job: compare(probe, folder, job, False)


def main():
    probe, failures = Probe(), 0
    for title, run in cases(probe, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"ok   {title}: {run(pathlib.Path(folder))}", flush=True)
            except Exception as error:  # the next network may be right
                print(f"FAIL {title}: {error}", flush=True)
                failures += 1
    print(f"onnx: {failures} failures")
    return 1 if failures else 0


sys.exit(main())
