# SPDX-License-Identifier: Apache-2.0
"""A script of several processes, recorded as one of them: its groups do nothing, and DistributedDataParallel has its buckets
and no peers. What the ranks say to each other is no part of the recording."""
import contextlib
import inspect

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


class _Done:
    """What a collective with async_op=True gives back, over before anybody waits for it."""

    def __init__(self, tensors):
        self._tensors = tensors

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def is_success(self):
        return True

    def result(self):
        return self._tensors


def _alone(collective):
    """This collective among one rank, which leaves its tensor as it is. Takes what torch's own takes."""
    signature = inspect.signature(collective)

    def leave(*inputs, **named):
        given = signature.bind(*inputs, **named).arguments
        if given.get("async_op"):
            return _Done([given["tensor"]] if "tensor" in given else [])
        return None

    return leave


def replacements():
    """(owner, name, value) as the recorder patches them: one rank of one, once the script has made its group."""
    distributed, groups = torch.distributed, []
    nothing = {"init_process_group": lambda *_, **__: groups.append(1), "destroy_process_group": lambda *_, **__: groups.clear(),
               "is_initialized": lambda: bool(groups), "get_rank": lambda *_: 0, "get_world_size": lambda *_: 1}
    found = [(distributed, name, value) for name, value in nothing.items() if hasattr(distributed, name)]
    found += [(distributed, name, _alone(getattr(distributed, name))) for name in ("barrier", "all_reduce", "broadcast", "reduce")
              if hasattr(distributed, name)]
    # Its methods, not its name: scripts have that already.
    wrapper = torch.nn.parallel.DistributedDataParallel
    return found + [(wrapper, "__init__", _make_replica), (wrapper, "no_sync", _no_sync),
                    (wrapper, "forward", lambda self, *inputs, **named: self.module(*inputs, **named)),
                    (wrapper, "train", torch.nn.Module.train), (wrapper, "_set_static_graph", lambda self: None),
                    (torch.cuda, "set_device", lambda *_: None), (torch.cuda, "current_device", lambda: 0),
                    (torch.cuda, "device_count", lambda: 1)]
