# SPDX-License-Identifier: Apache-2.0
"""The numbers behind simulated tensors, where they do not depend on chance or data.

A network may ask a small tensor for its numbers while it is built: torchvision's RegNets compute their widths with
torch.arange() and .tolist(). Simulated tensors have none, so whatever is made of constants alone is computed a second
time, on real tensors in main memory.
"""
import torch
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakTensorKeyDictionary

MOST = 1 << 16  # elements: beyond that nobody reads numbers off a tensor


class KnownValues:
    def __init__(self):
        self.real = WeakTensorKeyDictionary()

    def of(self, tensor):
        """The real tensor, or None."""
        if not isinstance(tensor, torch._subclasses.FakeTensor):
            return tensor if tensor.device.type == "cpu" and tensor.numel() <= MOST else None
        return self.real.get(tensor)

    def number(self, tensor):
        """The one element of a known tensor, or None."""
        real = self.of(tensor)
        with torch.utils._python_dispatch._disable_current_modes():
            return None if real is None else real.item()

    def follow(self, func, args, kwargs, results):
        """Does the call once more where everything that it reads is known; forgets what it has changed otherwise."""
        inputs, outputs = list(_tensors([args, kwargs])), list(_tensors(results))
        changed = [t for t in _written(func, args, kwargs) if isinstance(t, torch._subclasses.FakeTensor)]
        known = (torch.Tag.nondeterministic_seeded not in func.tags and all(t.numel() <= MOST for t in outputs)
                 and all(self.of(t) is not None for t in inputs)
                 and len(changed) == len(list(_written(func, args, kwargs))))
        if not known:
            for tensor in changed:
                self.real.pop(tensor, None)
            return
        real_args, real_kwargs = tree_map(self._real, (args, kwargs))
        with torch.utils._python_dispatch._disable_current_modes():
            made = func(*real_args, **real_kwargs)
        for tensor, real in zip(outputs, _tensors(made)):
            if isinstance(tensor, torch._subclasses.FakeTensor):
                self.real[tensor] = real

    def _real(self, value):
        if isinstance(value, torch.Tensor):
            return self.of(value)
        return torch.device("cpu") if isinstance(value, torch.device) else value


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _written(func, args, kwargs):
    """Tensors that the call writes into."""
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from _tensors(args[i] if i < len(args) else kwargs.get(argument.name))
