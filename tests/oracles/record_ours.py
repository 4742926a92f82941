#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: trace
"""The same network recorded in Python and traced in C++ has the same storages: record_ours.py

torchvision's ResNets and GoogLeNet (without its auxiliary heads) under python/lockstep/recorder.py against our own step (`lockstep plan --save-recording`), batch 16,
fp32, SGD. Compared is how often each size is born in the third step, from 512 bytes on. What may differ is listed.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
import torchvision

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "lockstep"
sys.path.insert(0, str(ROOT / "python"))
import lockstep  # noqa: E402

BATCH = 16
IMAGES = BATCH * 3 * 224 * 224 * 4
OURS = {"googlenet": {"auxiliary_heads": False}}
THEIRS = {"googlenet": {"aux_logits": False, "init_weights": False}}


def traced(model, folder):
    job = {"name": "record", "data": {"train": "synthetic", "samples": 1000, "image_size": 224},
           "model": {"name": model, "classes": 1000, **OURS.get(model, {})},
           "training": {"global_batch": BATCH, "steps": 3, "precision": "fp32", "optimizer": {"name": "sgd"}}}
    (folder / "job.json").write_text(json.dumps(job))
    subprocess.run([LOCKSTEP, "plan", folder / "job.json", "--on", "h200", "--save-recording", folder / "ours.rec"],
                   check=True, capture_output=True)
    return folder / "ours.rec"


def recorded(model, folder):
    def build():
        with torch.device("cpu"):
            net = getattr(torchvision.models, model)(**THEIRS.get(model, {}))
        net = net.to("cuda").to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, fused=True)
        images = torch.randn(BATCH, 3, 224, 224).contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (BATCH,))

        def step():
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(net(images), labels).backward()
            optimizer.step()
        return step
    lockstep.record(build, folder / "python.rec", title=model, micro_batch=BATCH, image_size=224)
    return folder / "python.rec"


def births(path):
    sizes, inside = collections.Counter(), False
    for line in path.read_text().splitlines()[1:]:
        kind, *words = line.split()
        if kind in "se":
            inside = kind == "s" and int(words[0]) == 2
        if inside and kind == "b" and int(words[1]) >= 512:
            sizes[int(words[1])] += 1
    return sizes


def check(model, features, folder):
    python, ours = births(recorded(model, folder)), births(traced(model, folder))
    only_python, only_ours = python - ours, ours - python
    # torchvision copies the pooled features of a channels-last image when it flattens them; we do not.
    only_python.subtract({BATCH * features * 4: 1})
    # Our step uploads its images, and keeps tables and losses of its own: none above half a megabyte.
    only_ours.subtract({IMAGES: 1})
    good = not +only_python and all(size < 1 << 19 for size in +only_ours)
    print(f"{'ok  ' if good else 'FAIL'} {model}: {python.total()} storages a step in Python, {ours.total()} in C++; "
          f"only in Python {dict(+only_python)}, only in C++ {dict(+only_ours)}")
    return good


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        good = [check(model, features, pathlib.Path(folder))
                for model, features in (("resnet18", 512), ("resnet34", 512), ("resnet50", 2048), ("resnet101", 2048),
                                        ("googlenet", 1024))]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
