#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a trained network loses on its way to ONNX: onnx_accuracy.py [NETWORK...] [--record].

Small networks learn drawn shapes by halves, so that there is something to lose; `lockstep eval` says their accuracy on the
validation images, onnxruntime that of the exported files in fp32 and with --fp16, of the same images as bytes. fp32 must
give every answer that `lockstep predict` gives; fp16 may change one in two hundred. --record: rows of results/export.json.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLES = ROOT / ".deps/oracles/bin/python"
try:
    import numpy
    import onnxruntime
    from PIL import Image
except ImportError:
    os.execv(ORACLES, [str(ORACLES), *sys.argv])
sys.path.insert(0, str(ROOT / "tests/faults"))
from supervised import commit, machine  # noqa: E402

LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin" / "lockstep"
SIZE, CLASSES = 32, 10
NETWORKS = {"smallcnn": {}, "resnet18": {}, "mobilenet_v2": {}, "vit_tiny_patch16_224": {"patch": 4, "depth": 4}}
CHANGED = 0.005  # of fp16's answers at most


def lockstep(folder, *words):
    done = subprocess.run([str(LOCKSTEP), *map(str, words)], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{done.stdout}lockstep {' '.join(map(str, words))}: exit code {done.returncode}")


def answers(file, pixels):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["lockstep.classes"])
    logits = numpy.concatenate([session.run(None, {"image": pixels[i:i + 100]})[0] for i in range(0, len(pixels), 100)])
    return logits, [names[i] for i in logits.argmax(1)]


def measure(folder, network, settings):
    # Nothing is resampled: images are stored in the size that the network sees.
    job = {"name": network, "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": SIZE, "center_crop": 1},
           "model": {"name": network, **settings},
           "training": {"global_batch": 32, "epochs": 3, "optimizer": {"name": "adamw", "lr": 0.001}, "threads": 1}}
    (folder / "job.json").write_text(json.dumps(job))
    run = folder / network
    lockstep(folder, "train", "job.json", "--run", run)
    lockstep(folder, "eval", run, "--json", "eval.json")
    lockstep(folder, "predict", run, "shapes/validate", "--top", 1, "--json", "predicted.json")
    predicted = json.loads((folder / "predicted.json").read_text())["images"]
    files = [pathlib.Path(folder, image["path"]) for image in predicted]
    pixels = numpy.stack([numpy.asarray(Image.open(file).convert("RGB")) for file in files])
    labels = [file.parent.name for file in files]
    ours = [image["classes"][0]["name"] for image in predicted]
    row = {"what": "accuracy of exported networks, trained on drawn shapes", "model": network, "samples": len(files),
           "top1": json.loads((folder / "eval.json").read_text())["top1"]}
    logits = {}
    for form, words in (("fp32", []), ("fp16", ["--fp16"])):
        file = folder / f"{network}-{form}.onnx"
        lockstep(folder, "export", run, "--to", file, "--preprocess", *words)
        logits[form], theirs = answers(file, pixels)
        row[f"{form}_top1"] = sum(a == b for a, b in zip(theirs, labels)) / len(labels)
        row[f"{form}_changed_answers"] = sum(a != b for a, b in zip(theirs, ours))
        row[f"{form}_bytes"] = file.stat().st_size
    row["fp16_largest_difference"] = float(numpy.abs(logits["fp16"] - logits["fp32"]).max())
    row["largest_logit"] = float(numpy.abs(logits["fp32"]).max())
    row["peer"] = f"onnxruntime {onnxruntime.__version__}"
    print(f"{network}: eval {row['top1']:.4f}, fp32 {row['fp32_top1']:.4f} ({row['fp32_changed_answers']} other answers), "
          f"fp16 {row['fp16_top1']:.4f} ({row['fp16_changed_answers']}), {row['fp16_bytes'] / row['fp32_bytes']:.2f} of the size", flush=True)
    assert 2 / CLASSES < row["top1"] < 0.999, "it has learnt nothing, or all: nothing would be compared"
    assert row["fp32_changed_answers"] == 0 and row["fp32_top1"] == row["top1"], "fp32 answers otherwise"
    assert row["fp16_changed_answers"] <= CHANGED * len(files), "fp16 answers otherwise"
    return row


def main():
    chosen = [word for word in sys.argv[1:] if not word.startswith("--")] or list(NETWORKS)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lockstep(folder, "prep", "--synthesize", "shapes", "--count", 6000, "--classes", CLASSES, "--image-size", SIZE, "--to", "shapes")
        for network in chosen:
            rows.append(measure(folder, network, NETWORKS[network]))
    if "--record" in sys.argv:
        for row in rows:
            row |= {"command": "tests/learning/onnx_accuracy.py --record", "commit": commit(), "machine": machine()}
        (ROOT / "results/export.json").write_text(json.dumps(rows, indent=1) + "\n")
    print("onnx_accuracy: " + ", ".join(f"{row['model']} {row['top1']:.4f} fp16 {row['fp16_top1']:.4f}" for row in rows))


main()
