# SPDX-License-Identifier: Apache-2.0
"""Records the step of an ordinary training script: python -m lockstep.record train.py [--to FILE.rec] [-- ARGUMENTS]

The script runs as it is, on a simulated GPU: torch says that there is one, tensors on it have shapes and no values. Its first
three steps are recorded: from one optimizer.step() to the next. Then the script is ended. Its data loaders give real samples,
read in this process. The function lockstep.record(build, path) is for what is not a script.
"""
import argparse
import contextlib
import gc
import os
import runpy
import sys
import warnings

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.data import dataloader

from lockstep import backward, checks, operators, recorder


class Recorded(BaseException):
    """Ends the script when its steps are recorded; no `except Exception` of a script takes it."""


class _Watcher:
    """Finds the steps: the first begins with the first forward pass that will be learnt from, each ends with the update."""

    def __init__(self, path, recording, steps, about):
        self.path, self.recorder, self.steps, self.about = path, recording, steps, about
        self.step = -1  # none has begun
        self.parameters, self.optimizers, self.header = [], [], None
        self.backwards = 0

    def before_forward(self, module, inputs):
        if self.step == 0 and not self.about["micro_batch"]:  # a model that was called by keywords: what it calls tells
            self._read_sizes(inputs)
        if self.step >= 0 or not module.training or not torch.is_grad_enabled():
            return
        if not any(p.device.type == "cuda" and p.requires_grad for p in module.parameters()):
            return
        gc.collect()
        self.parameters = recorder.name_modules(self.recorder)
        self._read_sizes(inputs)
        self.step = 0
        self.recorder.begin_step(0)

    def _read_sizes(self, inputs):
        shapes = [t.shape for t in operators.tensors_of(list(inputs)) if t.dim() > 0]
        if shapes and not self.about["micro_batch"]:
            self.about["micro_batch"] = shapes[0][0]
        if shapes and not self.about["image_size"] and len(shapes[0]) == 4:
            self.about["image_size"] = shapes[0][-1]

    def before_update(self, optimizer, *_):
        if self.optimizers and optimizer is not self.optimizers[0]:
            raise RuntimeError("lockstep.record: the script has several optimizers, whose steps are not told apart: record one step "
                               "of both with lockstep.record(build, path)")

    def after_update(self, optimizer, *_):
        if self.step < 0:
            raise RuntimeError("lockstep.record: optimizer.step() came before any forward pass of a module on \"cuda\": does the script "
                               "move its model there? torch.cuda.is_available() is True while it is recorded")
        self.recorder.events.append(f"e {self.step}")
        self.step += 1
        if self.step == self.steps:
            parameters = checks.check_whole(self.recorder.storages, self.parameters, self.optimizers)
            self.about["optimizer"] = self.about["optimizer"] or type(optimizer).__name__.lower()
            self.about["accumulation"] = max(1, self.backwards // self.steps)
            self.header = recorder.write(self.path, self.recorder, parameters, self.optimizers, self.about)
            raise Recorded
        self.recorder.begin_step(self.step)

    def count_backward(self, original):
        def counted(*args, **more):
            self.backwards += self.step >= 0
            return original(*args, **more)
        return counted


def _compile(model=None, **_):
    warnings.warn("lockstep.record: torch.compile is left out: the recording is of the step as it runs without it")
    return model if model is not None else (lambda found: found)


def _real(original):
    """Data are read outside the simulation: with values, as the script's own transforms need them."""
    def call(self, *args, **more):
        with _disable_current_modes():
            return original(self, *args, **more)
    return call


def _load_here(original):
    def call(self):
        self.num_workers, self.pin_memory, self.prefetch_factor = 0, False, None
        self._DataLoader__initialized, before = False, self._DataLoader__initialized
        self.persistent_workers = False
        self._DataLoader__initialized = before
        with _disable_current_modes():
            return original(self)
    return call


class _NoStream:
    """A stream or event of CUDA: the simulated GPU has one queue."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, _):
        return lambda *_, **__: 0


def _surroundings(watcher):
    """What scripts ask of a GPU beside tensors."""
    cuda = torch.cuda
    nothing = {name: (lambda *_, **__: None) for name in ("set_device", "empty_cache", "reset_peak_memory_stats", "init",
                                                         "manual_seed", "manual_seed_all")}
    zero = {name: (lambda *_, **__: 0) for name in ("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved",
                                                   "max_memory_reserved")}
    answers = {"device_count": lambda: 1, "get_device_name": lambda *_: "simulated GPU", "get_device_capability": lambda *_: (9, 0),
               "Stream": _NoStream, "Event": _NoStream, "current_stream": _NoStream, "stream": lambda *_: contextlib.nullcontext()}
    iterators = dataloader._BaseDataLoaderIter
    return [*((cuda, name, value) for name, value in {**nothing, **zero, **answers}.items()),
            (torch, "compile", _compile), (torch.nn.Module, "compile", lambda *_, **__: _compile(True) and None),
            (torch.Tensor, "pin_memory", lambda self, *_, **__: self),
            (torch.Tensor, "backward", watcher.count_backward(torch.Tensor.backward)),
            (dataloader.DataLoader, "__iter__", _load_here(dataloader.DataLoader.__iter__)),
            (iterators, "__next__", _real(iterators.__next__))]


def record_script(script, arguments, path, *, steps=3, title="", precision="", micro_batch=0, image_size=0, attention=None):
    """Writes the recording of the first steps of `script` to `path` and gives its header."""
    about = {"title": title or os.path.splitext(os.path.basename(script))[0], "precision": precision, "optimizer": "",
             "micro_batch": micro_batch, "accumulation": 1, "image_size": image_size, "steps": steps}
    recording, saved = recorder.Recorder(attention), backward.SavedTensors()
    recording.reads_numbers = True
    watcher = _Watcher(path, recording, steps, about)
    before, sys.argv = sys.argv, [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    hooks = []
    try:
        with recorder.simulated_gpu(recording, saved), recorder.replaced(_surroundings(watcher)):
            hooks = [register_module_forward_pre_hook(watcher.before_forward),
                     register_optimizer_step_pre_hook(watcher.before_update),
                     *recorder.watch_optimizers(recording, watcher.optimizers),
                     register_optimizer_step_post_hook(watcher.after_update)]
            runpy.run_path(script, run_name="__main__")
    except Recorded:
        pass
    finally:
        for hook in hooks:
            hook.remove()
        sys.argv = before
        sys.path.pop(0)
    if watcher.header is None:
        raise RuntimeError(f"lockstep.record: {script} ended after {max(watcher.step, 0)} steps of an optimizer; {steps} are needed")
    return watcher.header


def main():
    parser = argparse.ArgumentParser(prog="python -m lockstep.record", description=__doc__.split("\n")[0])
    parser.add_argument("--to", metavar="FILE", help="the recording; default: the script's name with .rec")
    parser.add_argument("--title", default="", help="of the recording; default: the script's name")
    parser.add_argument("--steps", type=int, default=3, help="how many (default 3: the allocator has settled by then)")
    parser.add_argument("--micro-batch", type=int, default=0, help="samples of a forward pass; default: as the first one has")
    parser.add_argument("--attention", choices=recorder.ATTENTION, help="the kernel that your GPU takes")
    parser.add_argument("script", help="what stands behind -- are its arguments")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options, arguments = parser.parse_args(words[:at]), words[at + 1:]
    path = options.to or os.path.splitext(os.path.basename(options.script))[0] + ".rec"
    try:
        header = record_script(options.script, arguments, path, steps=options.steps, title=options.title,
                               micro_batch=options.micro_batch, attention=options.attention)
    except (RuntimeError, FileNotFoundError) as error:
        if isinstance(error, RuntimeError) and not str(error).startswith("lockstep.record"):
            raise
        sys.exit(str(error))
    print(f"{path}: {header['steps']} steps of {header['title']}, {header['parameters'] / 1e6:.1f}M parameters, "
          f"batch {header['micro_batch']}, {header['optimizer']}\n"
          f"lockstep plan --recording {path} --on all --steps 10000")


if __name__ == "__main__":
    main()
