#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: weights
"""Holds our files of weights against the PyPI safetensors package and torch.save.

- what the package writes, we read; what we write, the package reads, and the bytes are the package's own;
- what torch.save writes (zip and the older plain pickles), we read, transposed and shared tensors included;
- pickles that run something are refused by name.
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "weights_probe"
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
         torch.int8, torch.uint8, torch.bool]


def convert(source, target):
    return subprocess.run([str(PROBE), str(source), str(target)], capture_output=True, text=True)


def tensors():
    torch.manual_seed(1)
    made = {f"layer.{str(kind).split('.')[1]}.weight": (torch.randn(3, 5) * 9).to(kind) for kind in TYPES}
    made.update({"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4), "a \"quoted\" \u00e9 name": torch.ones(2)})
    return made


def equal(left, right):
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and torch.equal(left[name], right[name]) for name in left)


class Evil:
    def __reduce__(self):
        return os.system, ("touch hacked",)


def main():
    failures = 0

    def check(holds, what):
        nonlocal failures
        failures += not holds
        print(f"{'ok  ' if holds else 'FAIL'} {what}")

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        ours, theirs, pth = folder / "ours.safetensors", folder / "theirs.safetensors", folder / "t.pth"
        save_file(tensors(), theirs)
        result = convert(theirs, ours)
        check(result.returncode == 0 and equal(load_file(ours), tensors()), "safetensors both ways " + result.stderr)
        check(ours.read_bytes() == theirs.read_bytes(), "the same bytes as the package writes")

        ordered = collections.OrderedDict(tensors())
        base = torch.arange(12.0).reshape(3, 4)
        strided = {"whole": base, "transposed": base.t(), "column": base[:, 1], "row": base[1], "corner": base[1:, 2:],
                   "parameter": torch.nn.Parameter(torch.ones(2, 2))}
        convolution = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last).state_dict()
        cases = {"dict": ordered, "strided and shared": strided, "module": torch.nn.BatchNorm2d(3).state_dict(),
                 "channels_last": convolution,
                 "training checkpoint": {"epoch": 3, "best": 0.5, "state_dict": ordered, "optimizer": {"lr": [0.1]}},
                 "model key": {"model": ordered, "args": None}}
        for name, value in cases.items():
            for modern in (True, False):
                torch.save(value, pth, _use_new_zipfile_serialization=modern)
                result = convert(pth, ours)
                inner = value.get("state_dict", value.get("model", value))
                expected = {key: each.detach() for key, each in inner.items()}
                check(result.returncode == 0 and equal(load_file(ours), expected),
                      f"torch.save, {'zip' if modern else 'plain'}: {name} {result.stderr}")

        for modern in (True, False):
            torch.save({"w": torch.ones(1), "x": Evil()}, pth, _use_new_zipfile_serialization=modern)
            result = convert(pth, ours)
            check(result.returncode == 2 and "refused: the file asks to run posix.system" in result.stderr,
                  "posix.system is refused by name")
        torch.save(torch.nn.Linear(2, 2), pth)
        result = convert(pth, ours)
        check(result.returncode == 2 and "run torch.nn.modules.linear.Linear" in result.stderr,
              "a whole module is refused by name")
        torch.jit.script(torch.nn.Linear(2, 2)).save(str(pth))
        result = convert(pth, ours)
        check(result.returncode == 2 and "is compressed" in result.stderr, "a TorchScript program is refused")
        check(not (folder / "hacked").exists() and not pathlib.Path("hacked").exists(), "nothing was run")
    print(f"weights: {failures} failures")
    return 1 if failures else 0


sys.exit(main())
