# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DistributedDataParallel with gloo on CPU ranks, stepped on demand: the peer of `lockstep bench ddp`.

Starts its other ranks itself; rank 0 reads "go N" lines and answers with the seconds of one step. Memory format:
whichever is faster here.
"""
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def make_model(name, image_size):
    if name.startswith("vit_"):
        import timm
        return timm.create_model(name, num_classes=1000, img_size=image_size)
    import torchvision
    return torchvision.models.get_model(name, num_classes=1000)


def timed(model, optimizer, values, targets, count):
    criterion = torch.nn.CrossEntropyLoss()
    start = time.perf_counter()
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(values), targets)
        loss.backward()
        optimizer.step()
        loss.item()
    return (time.perf_counter() - start) / max(1, count)


def make_optimizer(name, model):
    if name == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=1e-3)
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)


def agreed(value):
    """Rank 0's number, on every rank."""
    number = torch.tensor([float(value)])
    dist.broadcast(number, 0)
    return int(number.item())


def main():
    meeting, ranks, name, batch, image_size, threads, optimizer_name = sys.argv[1:8]
    rank = int(os.environ.get("LOCKSTEP_PEER_RANK", "0"))
    ranks, batch, image_size = int(ranks), int(batch), int(image_size)
    others = []
    if rank == 0:
        for other in range(1, ranks):
            others.append(subprocess.Popen([sys.executable] + sys.argv, stdin=subprocess.DEVNULL,
                                           env={**os.environ, "LOCKSTEP_PEER_RANK": str(other)}))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=ranks)
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    model = make_model(name, image_size).train()
    rows = (rank + 1) * batch // ranks - rank * batch // ranks
    images = torch.randn(rows, 3, image_size, image_size)
    targets = torch.randint(0, 1000, (rows,))
    trials = []
    for form in (torch.contiguous_format, torch.channels_last):
        model.to(memory_format=form)
        values = images.contiguous(memory_format=form)
        optimizer = make_optimizer(optimizer_name, model)
        timed(model, optimizer, values, targets, 1)
        trials.append(timed(model, optimizer, values, targets, 2))
    last = agreed(trials[1] < trials[0])
    form = torch.channels_last if last else torch.contiguous_format
    model.to(memory_format=form)
    values = images.contiguous(memory_format=form)
    parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = make_optimizer(optimizer_name, parallel)
    timed(parallel, optimizer, values, targets, 3)
    if rank == 0:
        print(f"ready {torch.__version__} {'channels_last' if last else 'contiguous'}", flush=True)
    while True:
        line = sys.stdin.readline().split() if rank == 0 else []
        count = agreed(int(line[1]) if line else 0)
        if count == 0:
            break
        seconds = timed(parallel, optimizer, values, targets, count)
        if rank == 0:
            print(seconds, flush=True)
    dist.destroy_process_group()
    for other in others:
        other.wait()


main()
