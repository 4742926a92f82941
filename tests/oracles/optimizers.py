#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: step run
"""Holds our optimizers and schedules against torch.optim and timm: optimizers.py

The same gradients must lead to the same parameters (2e-6 absolute after 20 steps), and every step of a schedule must
have the rate of torch.optim.lr_scheduler. The probe is build/bin/optimizers_torch_probe.
"""
import json
import os
import pathlib
import subprocess
import sys

import timm.optim
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "optimizers_torch_probe"
STEPS = 20


def probe(*words):
    out = subprocess.run([PROBE, *map(str, words)], capture_output=True, text=True, check=True).stdout
    return [float(line) for line in out.split()]


def wave(shape, phase):
    count = torch.Size(shape).numel()
    return torch.arange(count, dtype=torch.float32).mul(0.7).add(phase).sin().view(shape)


def check(what, ours, theirs, tolerance):
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    good = len(ours) == len(theirs) and worst <= tolerance
    print(f"{'ok  ' if good else 'FAIL'} {what}: worst difference {worst:.2g}")
    return good


class LasagneRmsprop:
    """lasagne.updates.rmsprop: epsilon below the root."""

    def __init__(self, groups, lr, rho=0.9, epsilon=1e-2):
        self.rows = [(each, torch.zeros_like(each), group["weight_decay"]) for group in groups for each in group["params"]]
        self.lr, self.rho, self.epsilon = lr, rho, epsilon

    def step(self):
        with torch.no_grad():
            for parameter, square, decay in self.rows:
                gradient = parameter.grad + decay * parameter
                square.mul_(self.rho).add_((1 - self.rho) * gradient ** 2)
                parameter.sub_(self.lr * gradient / (square + self.epsilon).sqrt())


def optimizer_case(name, lr, momentum, nesterov, decay, decay_all):
    weight = wave((7, 11), 0.3).requires_grad_()
    bias = wave((11,), 0.9).requires_grad_()
    groups = [{"params": [weight], "weight_decay": decay},
              {"params": [bias], "weight_decay": decay if decay_all else 0}]
    groups[0]["always_adapt"] = True  # timm adapts decayed groups alone; we adapt all that is no norm or bias
    if name == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=lr)
    elif name == "lars":
        optimizer = timm.optim.Lars(groups, lr=lr, momentum=momentum, nesterov=nesterov)
    elif name == "lamb":
        optimizer = timm.optim.Lamb(groups, lr=lr, eps=1e-8, max_grad_norm=None)
    elif name == "rmsprop":
        optimizer = torch.optim.RMSprop(groups, lr=lr, alpha=0.9, eps=1e-2)
    elif name == "rmsprop_in_root":
        optimizer = LasagneRmsprop(groups, lr)
    else:
        optimizer = torch.optim.SGD(groups, lr=lr, momentum=momentum, nesterov=nesterov)
    for step in range(STEPS):
        weight.grad, bias.grad = wave((7, 11), step), wave((11,), step)
        optimizer.step()
    theirs = torch.cat([weight.detach().flatten(), bias.detach()]).tolist()
    ours = probe(name, lr, momentum, int(nesterov), decay, int(decay_all), STEPS)
    return check(f"{name} lr={lr} momentum={momentum} nesterov={nesterov} decay={decay} all={decay_all}", ours, theirs,
                 2e-6)


def schedule_case(what, schedule, make, total=60, per_epoch=10, lr=0.4):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=lr)
    scheduler = make(optimizer)
    theirs = []
    for _ in range(total):
        theirs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return check(f"schedule {what}", probe("schedule", json.dumps(schedule), lr, total, per_epoch), theirs, 1e-9)


def main():
    lr = torch.optim.lr_scheduler
    warm = [lambda o: lr.LinearLR(o, start_factor=1 / 20, end_factor=1, total_iters=19),
            lambda o: lr.CosineAnnealingLR(o, T_max=40)]
    good = [optimizer_case(*case) for case in (
        ("sgd", 0.1, 0, False, 0, False), ("sgd", 0.1, 0.9, False, 1e-2, False), ("sgd", 0.05, 0.9, True, 1e-2, True),
        ("adamw", 1e-2, 0, False, 0, False), ("adamw", 1e-2, 0, False, 0.1, True),
        ("adamw", 3e-3, 0, False, 0.05, False),
        ("lars", 0.2, 0.9, False, 1e-2, False), ("lars", 0.2, 0.9, True, 1e-2, False), ("lars", 0.2, 0, False, 0, False),
        ("lamb", 1e-2, 0, False, 1e-2, False), ("lamb", 1e-2, 0, False, 0, False),
        ("rmsprop", 1e-2, 0, False, 1e-2, False), ("rmsprop", 1e-2, 0, False, 1e-2, True),
        ("rmsprop_in_root", 1e-2, 0, False, 2e-4, False))]
    good += [
        schedule_case("constant", {"name": "constant"}, lambda o: lr.ConstantLR(o, factor=1)),
        schedule_case("step", {"name": "step", "step_epochs": [2, 4], "gamma": 0.2},
                      lambda o: lr.MultiStepLR(o, [20, 40], gamma=0.2)),
        schedule_case("cosine", {"name": "cosine", "final_lr": 0.01},
                      lambda o: lr.CosineAnnealingLR(o, T_max=60, eta_min=0.01)),
        schedule_case("cosine with warm-up", {"name": "cosine", "warmup_epochs": 2},
                      lambda o: lr.SequentialLR(o, [make(o) for make in warm], milestones=[20])),
        schedule_case("polynomial", {"name": "polynomial", "power": 2},
                      lambda o: lr.PolynomialLR(o, total_iters=60, power=2)),
        schedule_case("onecycle", {"name": "onecycle", "peak_share": 0.3, "start_divisor": 25},
                      lambda o: lr.OneCycleLR(o, max_lr=0.4, total_steps=60, pct_start=0.3,
                                              cycle_momentum=False, final_div_factor=1e30), total=60),
    ]
    sys.exit(0 if all(good) else 1)


main()
