# SPDX-License-Identifier: Apache-2.0
"""Records a PyTorch training step without a GPU: lockstep.record(build, "mine.rec"). For whole scripts see record.py.

The step runs under FakeTensorMode: tensors have shapes and a device and no values. A dispatch mode sees every operator;
storages are watched by weak references, so what autograd keeps is seen as well.
"""
from __future__ import annotations

import contextlib
import gc
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from . import backward, checks, distributed, operators, recording, recurrent, values

_OPTIMIZERS = sys.modules["torch.optim.optimizer"]  # torch.optim hides the module behind its own names
ATTENTION = ("flash", "efficient", "math", "cudnn")


class _SimulatedGpu(FakeTensorMode):
    """Never opens a GPU, also where one is."""
    avoid_device_init = True


class _Storages:
    """Births and deaths on the simulated GPU, as events in one list with those of the operators."""

    def __init__(self, events):
        self.events, self.ids, self.next_id = events, {}, 0
        self.memory = {}   # id -> class, where it is known better than by the moment of the birth
        self.births = {}   # id -> [event index, bytes, default class]
        self.default = "other"

    def see(self, tensor):
        if tensor.device.type != "cuda":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.ids or storage.nbytes() == 0:
            return
        number = self.hold(storage.nbytes())
        self.ids[key] = (number, weakref.ref(storage, lambda _, key=key: self._bury(key)))

    def hold(self, size):
        number = self.next_id
        self.next_id += 1
        self.births[number] = (len(self.events), size, self.default)
        self.events.append(None)  # written at the end, when the class is known
        return number

    def _bury(self, key):
        number, _ = self.ids.pop(key)
        self.events.append(f"d {number}")

    def knows(self, tensor):
        return tensor.numel() == 0 or tensor.untyped_storage()._cdata in self.ids

    def name(self, tensor, memory):
        found = self.ids.get(tensor.untyped_storage()._cdata)
        if found:
            self.memory.setdefault(found[0], memory)

    def finish(self):
        for number, (at, size, default) in self.births.items():
            letter = recording.MEMORY_CLASSES[self.memory.get(number, default)]
            self.events[at] = f"b {number} {size} {letter}"


class Recorder(TorchDispatchMode):
    def __init__(self, attention):
        super().__init__()
        self.events = []
        self.storages = _Storages(self.events)
        self.table, self.rows = {}, []
        self.phase, self.attention = "setup", attention
        self.reads_numbers = False  # of a whole script: what it reads while it sets things up need not be the network's sizes
        self.known = values.KnownValues()
        self.backwards = 0  # calls so far
        self.layouts = {"channels_last": 0, "contiguous": 0}  # FLOPs of the convolutions in each
        self.estimated = set()  # operators whose time nobody measured: the plan's interval is wider for them

    def begin_step(self, number):
        self.storages.default, self.phase = "activations", "forward"
        self.events.append(f"s {number}")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name
        if name in ("aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"):
            if args[0].device.type == "cuda":  # a GPU is waited for, a processor has it
                self._run(operators.describe(func, args, kwargs, None))
            return self._number(name, args)
        if name.startswith("prim::"):  # a question about a tensor (its device): nothing runs on a GPU
            return func(*args, **kwargs)
        checks.refuse_operator(name)
        copies = self._copies(name, args)
        # Operators that only write into their arguments need no simulation, and some have none.
        results = func(*args, **kwargs) if func._schema.returns else None
        results = operators.as_cudnn_lays(name, args, results)
        # The kernel allocates the gradients of weight and bias first.
        in_order = results[::-1] if name == "aten::native_batch_norm_backward" else results
        for tensor in operators.tensors_of(in_order):
            self.storages.see(tensor)
        if any(t.device.type == "cuda" for t in operators.tensors_of([args, list(kwargs.values()), results])):
            self._run(operators.describe(func, args, kwargs, results))
        self.events.extend(f"d {number}" for number in copies)
        self.known.follow(func, args, kwargs, results)
        return results

    def _number(self, name, args):
        """A number that the script reads off a tensor: its own where it is known, else a plausible one, but never
        while the network is built, whose sizes may depend on it."""
        number = self.known.number(args[0]) if name == "aten::_local_scalar_dense" else None
        if number is not None:
            return number
        if self.phase == "setup" and not self.reads_numbers:
            checks.refuse_number(name, args[0])
        if name != "aten::_local_scalar_dense":
            return False
        return 1.0 if args[0].dtype.is_floating_point else args[0].dtype == torch.bool or 1

    def _copies(self, name, args):
        """Kernels that make their input contiguous first, for the time of the call."""
        if name not in ("aten::native_layer_norm", "aten::native_layer_norm_backward"):
            return []
        copies = [t for t in operators.tensors_of(args) if t.device.type == "cuda" and not t.is_contiguous()]
        return [self.storages.hold(t.numel() * t.element_size()) for t in copies]

    def _run(self, parts):
        for part in parts:
            if part.kind == "convolution" and part.layout:
                self.layouts[part.layout] += part.flops
            if part.sides not in (0, 2):
                self.estimated.add(part.name)
            key = (*part.key(), self.phase)
            if key not in self.table:
                self.table[key] = len(self.rows)
                self.rows.append((part.name, part.kind, part.type, self.phase, part.flops, part.bytes, part.launches,
                                  -1, part.shape))
            self.events.append(f"r {self.table[key]}")


def _attend(choice, original):
    """scaled_dot_product_attention with the kernel that a GPU takes: the original asks the GPU."""
    def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if torch.is_autocast_enabled("cuda"):
            query, key, value = (t.to(torch.get_autocast_dtype("cuda")) for t in (query, key, value))
        half = query.dtype in (torch.float16, torch.bfloat16)
        kernel = choice or ("flash" if half and attn_mask is None else "efficient")
        if kernel == "math" or enable_gqa or query.dim() != 4 or query.device.type != "cuda":
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if kernel == "flash" and half and attn_mask is None:
            return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False,
                                                                      scale=scale)[0]
        if kernel == "cudnn" and half and attn_mask is None:
            return torch.ops.aten._scaled_dot_product_cudnn_attention(query, key, value, None, True, dropout_p, is_causal,
                                                                      False, scale=scale)[0]
        grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        return torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, grad, dropout_p,
                                                                      is_causal, scale=scale)[0]
    return attend


def _linear(original):
    """torch's own adds the bias in place; to tensors of a subclass it does not, which would show as one more storage."""
    def linear(input, weight, bias=None):
        if bias is None or input.dim() <= 2 or input.is_contiguous() or torch.is_autocast_enabled("cuda"):
            return original(input, weight, bias)
        return torch.matmul(input, weight.t()).add_(bias)
    return linear


def _simple_apply(module, fn, recurse=True):
    """Module._apply for simulated parameters: the original swaps tensor objects, which weak references forbid."""
    for child in module.children() if recurse else ():
        child._apply(fn)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            moved_by, moved = getattr(parameter, "_lockstep_moved", (None, None))
            if moved_by is not fn:
                with torch.no_grad():
                    before = parameter.detach()
                    after = fn(before)
                if after is before:  # moved nowhere, it stays the one that an optimizer may have already
                    continue
                moved = torch.nn.Parameter(after, parameter.requires_grad)
                parameter._lockstep_moved = (fn, moved)  # layers that share it share it afterwards
            module._parameters[name] = moved
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


@contextlib.contextmanager
def replaced(replacements: list[tuple[Any, str, Any]]):
    """Attributes (owner, name, value) while it lasts."""
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, value in replacements:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in originals:
            setattr(owner, name, value)


@contextlib.contextmanager
def _patched(saved, recorder):
    """What of torch asks for a real GPU, or must be seen, while a step is recorded."""
    def run_backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, **_):
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        gradients = [grad_tensors] if isinstance(grad_tensors, torch.Tensor) else grad_tensors or [None] * len(tensors)
        if create_graph:
            raise RuntimeError("lockstep.record: gradients of gradients (create_graph=True) are not recorded")
        before, recorder.phase = recorder.phase, "backward"
        recorder.events.append("t 1")
        number, recorder.backwards = recorder.backwards, recorder.backwards + 1
        # torch.utils.checkpoint runs a block again once for each task of the engine, which it asks for its number.
        task, torch._C._current_graph_task_id = torch._C._current_graph_task_id, lambda: number
        try:
            backward.run_backward(saved, tensors, list(gradients), bool(retain_graph))
        finally:
            torch._C._current_graph_task_id = task
            recorder.phase = before
            recorder.events.append("t 0")

    def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        if inputs is not None:
            raise RuntimeError("lockstep.record: backward(inputs=...) is not recorded")
        run_backward([self], [gradient], retain_graph, create_graph)

    attend = _attend(recorder.attention, torch.nn.functional.scaled_dot_product_attention)
    replacements = [(torch.nn.functional, "scaled_dot_product_attention", attend),
                    (torch.nn.functional, "linear", _linear(torch.nn.functional.linear)),
                    (torch.Tensor, "backward", tensor_backward), (torch.autograd, "backward", run_backward),
                    (torch.nn.Module, "_apply", _simple_apply),
                    (torch.nn.RNNBase, "flatten_parameters", recurrent.check_recurrent),
                    (torch.nn.Module, "cuda", lambda self, device=None: self.to("cuda")),
                    (torch.Tensor, "cuda", lambda self, *_, **__: self.to("cuda")),
                    (torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
                    (torch.cuda, "is_bf16_supported", lambda *_, **__: True),
                    (torch.cuda, "is_available", lambda: True),  # scripts ask before they say "cuda"
                    (torch._subclasses.fake_tensor, "init_gpu_context", lambda _: None),
                    (torch.cuda, "is_current_stream_capturing", lambda: False),
                    (torch.amp.GradScaler, "_maybe_opt_step", lambda _, optimizer, __, *args, **more: optimizer.step(*args, **more)),
                    (torch.cuda, "synchronize", lambda *_: None),
                    # Else optimizers take simulated parameters for strange ones and update them one by one.
                    (_OPTIMIZERS, "_foreach_supported_types",
                     [*_OPTIMIZERS._foreach_supported_types, torch._subclasses.FakeTensor]),
                    *distributed.replacements()]
    with replaced(replacements):
        yield


@contextlib.contextmanager
def simulated_gpu(recorder, saved):
    """Inside, "cuda" is a GPU that has shapes and no values, and everything on it is recorded."""
    with _SimulatedGpu(allow_non_fake_inputs=True), _patched(saved, recorder), recorder, saved.hooks():
        yield


def watch_optimizers(recorder, seen):
    # What an optimizer makes without saying where (its count of steps) is on the processor, as in the script itself.
    at_home = []

    def before(optimizer, *_):
        recorder.phase = "update"
        at_home.append(torch.device("cpu"))
        at_home[-1].__enter__()
        if optimizer not in seen:
            seen.append(optimizer)
            for parameter in _parameters_of(optimizer):
                recorder.storages.name(parameter, "weights")
        for parameter in _parameters_of(optimizer):
            if parameter.grad is not None:
                recorder.storages.name(parameter.grad, "gradients")

    def after(optimizer, *_):
        at_home.pop().__exit__(None, None, None)
        for state in optimizer.state.values():
            for tensor in operators.tensors_of(list(state.values())):
                recorder.storages.name(tensor, "optimizer")
        recorder.phase = "forward"
    return [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]


def _parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def name_modules(recorder):
    """Parameters and buffers of every module that lives now are weights. Gives the parameters, each once."""
    parameters = {}
    modules = checks.living_modules()
    for bucket in distributed.buckets_of(modules):
        recorder.storages.name(bucket, "buckets")
    for module in modules:
        for tensor in list(module.parameters(recurse=False)) + list(module.buffers(recurse=False)):
            if tensor.device.type != "cuda" or not isinstance(tensor, torch._subclasses.FakeTensor):
                continue
            recorder.storages.name(tensor, "weights")
            if isinstance(tensor, torch.nn.Parameter):
                parameters[id(tensor)] = tensor
    return list(parameters.values())


def record(build: Callable[[], Callable[[], Any]], path: str | os.PathLike[str], *, steps: int = 3, title: str = "",
           precision: str = "", optimizer: str = "", micro_batch: int = 0, image_size: int = 0,
           attention: str | None = None) -> dict[str, Any]:
    """Writes the recording of a training step to `path`.

    build: a function that makes model, optimizer and data as your script does and returns a function that executes one
    step. Both run on a simulated GPU: new tensors are on "cuda" unless they say otherwise, and have no values.
    attention: "flash", "cudnn" (what PyTorch takes on Hopper and newer), "efficient" or "math"; by default flash for 16-bit
    tensors and efficient for others.
    """
    recorder, saved = Recorder(attention), backward.SavedTensors()
    seen: list[torch.optim.Optimizer] = []
    with simulated_gpu(recorder, saved), torch.device("cuda"):
        step = build()
        gc.collect()
        parameters = name_modules(recorder)
        hooks = watch_optimizers(recorder, seen)
        try:
            for i in range(steps):
                recorder.begin_step(i)
                step()
                recorder.events.append(f"e {i}")
        finally:
            for hook in hooks:
                hook.remove()
        header = {"title": title, "precision": precision, "optimizer": optimizer, "micro_batch": micro_batch,
                  "accumulation": 1, "image_size": image_size, "steps": steps}
        return write(path, recorder, checks.check_whole(recorder.storages, parameters, seen), seen, header)


def write(path, recorder, parameters, optimizers, about):
    """The recording of what `recorder` has seen, while all of it lives; gives its header."""
    recorder.storages.finish()
    events = list(recorder.events)
    parameter_bytes = sum(p.numel() * p.element_size() for p in parameters)
    state = sum(t.untyped_storage().nbytes() for o in optimizers for s in o.state.values()
                for t in operators.tensors_of(list(s.values())))
    used = next((row[0] for row in recorder.rows if row[1] == "attention"), "")
    header = {"source": f"torch {torch.__version__}", "title": about["title"], "precision": about["precision"],
              "optimizer": about["optimizer"], "attention": next((k for k in ATTENTION if k in used), ""),
              "micro_batch": about["micro_batch"], "accumulation": about["accumulation"], "ranks": 1,
              "image_size": about["image_size"], "layout": max(recorder.layouts, key=recorder.layouts.get),
              "estimated": sorted(recorder.estimated),
              "parameters": sum(p.numel() for p in parameters), "parameter_bytes": parameter_bytes,
              "checkpoint_bytes": parameter_bytes + state, "steps": about["steps"], "blocks": []}
    recording.write_step(path, header, recorder.rows, events)
    return header
