#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: forecast
"""Kinds of steps that scripts have, recorded by python/lockstep: record_kinds.py

Each against what the same step does on the processor with plain PyTorch, or against a figure worked out by hand: weights
that layers share, torch.utils.checkpoint, accumulated gradients, GradScaler, DistributedDataParallel, embeddings,
convolutions of one and three dimensions and transposed ones, and optimizers that take all parameters at once.
"""
import collections
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import lockstep  # noqa: E402


class Recomputed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.block, self.head = nn.Linear(8, 32), nn.Sequential(nn.Linear(32, 32), nn.GELU()), nn.Linear(32, 3)
        self.reentrant = reentrant

    def forward(self, x):
        x = self.first(x)
        return self.head(self.block(x) if self.reentrant is None else checkpoint(self.block, x, use_reentrant=self.reentrant))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        return self.head(self.words(tokens).mean(1))


def step_of(net, inputs, optimizer=None, accumulate=1, scaler=False, classes=3):
    updates = optimizer or torch.optim.AdamW(net.parameters())
    labels = torch.randint(0, classes, (4,), device="cuda")
    scale = torch.amp.GradScaler("cuda") if scaler else None

    def step():
        updates.zero_grad(set_to_none=True)
        for _ in range(accumulate):
            loss = F.cross_entropy(net(inputs), labels)
            (scale.scale(loss) if scale else loss).backward()
        if scale:
            scale.step(updates)
            scale.update()
        else:
            updates.step()
    return step


class Recorded:
    def __init__(self, build, folder):
        path = folder / "x.rec"
        self.header = lockstep.record(build, path, title="kind", micro_batch=4)
        rows, self.calls, self.flops = [], collections.Counter(), collections.Counter()
        self.bytes, inside = collections.Counter(), False
        for line in path.read_text().splitlines():
            kind, *words = line.split()
            if kind == "o":
                rows.append((words[0].rpartition("::")[2], words[1], words[3], float(words[4])))
            elif kind in "se" and words[0] == "2":
                inside = kind == "s"
            elif kind == "r" and inside:
                name, _, phase, flops = rows[int(words[0])]
                self.calls[name, phase] += 1
                self.flops[phase] += flops
            elif kind == "b":
                self.bytes[words[2]] += int(words[1])


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to("cuda")


def vectors():
    return torch.randn(4, 8, device="cuda")


def convolved(layer, width, *shape):
    return lambda: step_of(nn.Sequential(layer(), nn.Flatten(), nn.Linear(width, 3)).to("cuda"),
                           torch.randn(*shape, device="cuda"))


def cases(folder):
    def get(build):
        return Recorded(build, folder)
    plain = get(lambda: step_of(Recomputed(None).to("cuda"), vectors()))
    block = 2 * 4 * 32 * 32  # operations of the block's product
    for reentrant in (False, True):
        again = get(lambda r=reentrant: step_of(Recomputed(r).to("cuda"), vectors()))
        yield f"checkpoint, reentrant {reentrant}", (again.flops["forward"], again.flops["backward"] - plain.flops["backward"],
                                                     again.header["parameters"]), \
            (plain.flops["forward"], block, plain.header["parameters"])
    tied = get(lambda: step_of(Tied().to("cuda"), torch.randint(0, 50, (4, 5), device="cuda"), classes=50))
    yield "shared weights", tied.header["parameters"], sum(p.numel() for p in Tied().parameters())
    yield "embedding", tied.calls["embedding", "forward"], 1
    once, thrice = get(lambda: step_of(mlp(), vectors())), get(lambda: step_of(mlp(), vectors(), accumulate=3))
    yield "accumulation", thrice.flops["forward"] + thrice.flops["backward"], 3 * (once.flops["forward"] + once.flops["backward"])
    scaled = get(lambda: step_of(mlp(), vectors(), scaler=True))
    yield "GradScaler", scaled.calls["_amp_foreach_non_finite_check_and_unscale_", "forward"] + \
        scaled.calls["_amp_foreach_non_finite_check_and_unscale_", "update"], 1
    updates = sum(count for (name, phase), count in once.calls.items() if phase == "update" and name.startswith("_foreach"))
    single = [name for (name, phase) in once.calls if phase == "update" and not name.startswith("_foreach")]
    yield "AdamW, all parameters at once", (updates > 5, single), (True, [])
    own = sum(p.numel() for p in nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 3)).parameters())
    ddp = get(lambda: step_of(DistributedDataParallel(mlp(), device_ids=[0]), vectors()))
    yield "DistributedDataParallel", (ddp.header["parameters"], ddp.bytes["b"]), (own, 4 * own)
    views = get(lambda: step_of(DistributedDataParallel(mlp(), gradient_as_bucket_view=True), vectors()))
    yield "DistributedDataParallel, gradients in buckets", views.bytes["b"], 0
    asked = []

    def ask_for_groups():
        asked.append(torch.distributed.is_initialized())
        torch.distributed.init_process_group("nccl")
        asked.append(torch.distributed.is_initialized())
        return step_of(mlp(), vectors())
    get(ask_for_groups)
    yield "a group is there once it is made", asked, [False, True]
    done = []

    def reduce_beside():
        group, step = torch.distributed, step_of(mlp(), vectors())
        loss = torch.ones(3, device="cuda")

        def step_and_reduce():
            step()
            works = [group.all_reduce(loss, async_op=True), group.all_reduce(loss, group.ReduceOp.MAX, None, True),
                     group.broadcast(loss, 0, async_op=True), group.reduce(loss, dst=0, async_op=True), group.barrier(async_op=True)]
            done[:] = [(work.wait(), work.is_completed(), len(work.result())) for work in works] + [group.all_reduce(loss)]
        return step_and_reduce
    get(reduce_beside)
    yield "what is reduced beside the step is done", done, [(True, True, 1)] * 4 + [(True, True, 0), None]
    for name, layer, shape, operations in (
            ("Conv1d", lambda: nn.Conv1d(3, 4, 3), (4, 3, 18), 2 * 4 * 4 * 16 * 3 * 3),
            ("Conv3d", lambda: nn.Conv3d(2, 4, 3, padding=1), (4, 2, 6, 8, 8), 2 * 4 * 4 * 6 * 8 * 8 * 2 * 27),
            ("ConvTranspose2d", lambda: nn.ConvTranspose2d(3, 4, 2, 2), (4, 3, 8, 8), 2 * 4 * 3 * 4 * 8 * 8 * 4)):
        width = layer()(torch.randn(*shape)).flatten(1).shape[1]
        found = get(convolved(layer, width, *shape))
        yield name, found.flops["forward"] - 2 * 4 * 3 * width, operations
    for name, make, form, expected in (
            ("channels last in bf16", two_convolutions(nn.Conv2d, nn.BatchNorm2d), torch.channels_last, "channels_last"),
            ("contiguous in bf16", two_convolutions(nn.Conv2d, nn.BatchNorm2d), torch.contiguous_format, "contiguous"),
            ("volumes", two_convolutions(nn.Conv3d, nn.BatchNorm3d), torch.contiguous_format, "contiguous"),
            ("volumes, channels last", two_convolutions(nn.Conv3d, nn.BatchNorm3d), torch.channels_last_3d, "channels_last")):
        yield name, get(lambda m=make, f=form: m(f)).header["layout"], expected


def two_convolutions(convolution, norm):
    """A step in bf16, the second convolution of what the first one made: `form` must reach it."""
    sides = 3 if convolution is nn.Conv3d else 2

    def build(form):
        layers = nn.Sequential(convolution(3, 8, 3, padding=1), norm(8), nn.ReLU(), convolution(8, 64, 3, padding=1),
                               nn.Flatten(), nn.Linear(64 * 8 ** sides, 3)).to("cuda")
        layers = layers.to(memory_format=form)
        images = torch.randn(4, 3, *[8] * sides, device="cuda").contiguous(memory_format=form)
        labels, optimizer = torch.randint(0, 3, (4,), device="cuda"), torch.optim.SGD(layers.parameters(), 0.1)

        def step():
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = F.cross_entropy(layers(images), labels)
            loss.backward()
            optimizer.step()
        return step
    return build


def main():
    wrong = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, found, expected in cases(pathlib.Path(folder)):
            total += 1
            wrong += found != expected
            print(f"{'ok  ' if found == expected else 'FAIL'} {name}: {found}" +
                  ("" if found == expected else f", expected {expected}"))
    print(f"record_kinds: {total - wrong} of {total} agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
