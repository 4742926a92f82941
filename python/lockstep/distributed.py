# SPDX-License-Identifier: Apache-2.0
"""A script of several processes, recorded as one of them: its groups do nothing, and DistributedDataParallel has its buckets
and no peers. What the ranks say to each other is no part of the recording."""
import contextlib

import torch

FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # bytes, as torch's reducer cuts them


def _make_replica(self, module, *_, gradient_as_bucket_view=False, **__):
    """Gradients are copied into buckets, which live as long as the wrapper does; with gradient_as_bucket_view they lie
    there, and nothing is counted twice."""
    torch.nn.Module.__init__(self)
    self.module = module
    self.lockstep_buckets = [] if gradient_as_bucket_view else _buckets(module)


@contextlib.contextmanager
def _no_sync(self):
    yield


def _buckets(module):
    left = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
    made = []
    while left > 0:
        size = min(left, BUCKET if made else FIRST_BUCKET)
        made.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        left -= size
    return made


def buckets_of(modules):
    """Of every DistributedDataParallel among them."""
    return [bucket for module in modules if isinstance(module, torch.nn.parallel.DistributedDataParallel)
            for bucket in module.lockstep_buckets]


def replacements():
    """(owner, name, value) as the recorder patches them: one rank of one, once the script has made its group."""
    distributed, groups = torch.distributed, []
    nothing = {"init_process_group": lambda *_, **__: groups.append(1), "destroy_process_group": lambda *_, **__: groups.clear(),
               "barrier": lambda *_, **__: None, "all_reduce": lambda *_, **__: None, "broadcast": lambda *_, **__: None,
               "reduce": lambda *_, **__: None, "is_initialized": lambda: bool(groups), "get_rank": lambda *_: 0,
               "get_world_size": lambda *_: 1}
    found = [(distributed, name, value) for name, value in nothing.items() if hasattr(distributed, name)]
    # Its methods, not its name: scripts have that already.
    wrapper = torch.nn.parallel.DistributedDataParallel
    return found + [(wrapper, "__init__", _make_replica), (wrapper, "no_sync", _no_sync),
                    (wrapper, "forward", lambda self, *inputs, **named: self.module(*inputs, **named)),
                    (wrapper, "train", torch.nn.Module.train), (wrapper, "_set_static_graph", lambda self: None),
                    (torch.cuda, "set_device", lambda *_: None), (torch.cuda, "current_device", lambda: 0),
                    (torch.cuda, "device_count", lambda: 1)]
