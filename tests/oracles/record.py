#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: forecast
"""Holds python/lockstep/recorder.py to a real GPU: record.py [--all] [--json FILE]

Steps of torchvision models, recorded here without a GPU, against what an H200's allocator did with the same steps
(results/recordings). Every storage of a step must be in the GPU's stream, as often as there are steps; what the GPU has
besides is scratch of its kernels. Then the forecast of the recording must have the GPU's peaks: allocated and
reserved within 1 %. A network whose sizes come from tensors (RegNet) is recorded whole, and what cannot be is refused
by name.
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
sys.path.insert(0, str(ROOT / "python"))
import lockstep  # noqa: E402

CASES = [("resnet18", 32, "fp32", "sgd", ""), ("resnet50", 128, "amp", "sgd", ""), ("vit_b_16", 128, "bf16", "adamw", ""),
         ("googlenet", 64, "amp", "sgd", ""), ("resnet50", 64, "tf32", "sgd", "-expandable")]
SLOW = [("densenet121", 64, "amp", "sgd", ""), ("resnet152", 32, "fp32", "sgd", ""), ("vit_b_16", 64, "amp", "adamw", ""),
        ("mobilenet_v2", 128, "amp", "sgd", ""), ("efficientnet_b0", 64, "amp", "sgd", "-expandable")]

# Storages of a step that the GPU does not have: at::linear adds the bias out of place to tensors of a subclass, and
# under autocast that cannot be helped. One a layer, freed at once.
KNOWN = {("vit_b_16", 64, "amp"): {58097664: 12}}


def build(model, batch, precision, optimizer):
    def make():
        options = {"aux_logits": False, "init_weights": False} if model == "googlenet" else {}
        with torch.device("cpu"):
            net = getattr(torchvision.models, model)(**options)
        net = net.to("cuda").to(memory_format=torch.channels_last)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        net = net.to(dtype)
        if optimizer == "sgd":
            updates = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, fused=True)
        else:
            updates = torch.optim.AdamW(net.parameters(), fused=True)
        images = torch.randn(batch, 3, 224, 224, device="cpu").to("cuda", dtype)
        images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (batch,))

        def step():
            updates.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == "amp"):
                loss = F.cross_entropy(net(images).float(), labels)
            loss.backward()
            updates.step()
        return step
    return make


def recorded_step(path, number):
    """[(born, id, size)] of one step."""
    events, sizes, inside = [], {}, False
    for line in path.read_text().splitlines()[1:]:
        kind, *words = line.split()
        if kind in "se" and int(words[0]) == number:
            inside = kind == "s"
        if kind == "b":
            sizes[words[0]] = int(words[1])
        if kind in "bd" and inside:
            events.append((kind == "b", words[0], sizes[words[0]]))
    return events


def gpu_stream(path):
    events, sizes = [], []
    for token in " ".join(path.read_text().splitlines()[1:-1]).split():
        if token[0] == "a":
            sizes.append(int(token[1:].split("@")[0], 16))
            events.append((True, len(sizes) - 1, sizes[-1]))
        elif token[0] == "f":
            block = len(sizes) - int(token[1:], 16)
            events.append((False, block, sizes[block]))
    return events


def forecast(path, mode):
    """Peaks as `lockstep plan` foretells them for one H200."""
    probe = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "memory_probe"
    return json.loads(subprocess.run([probe, path, "h200", *(["--expandable"] if mode else [])], check=True,
                                     capture_output=True, text=True).stdout)


def result_row(gpu, found, peaks):
    head = json.loads(gpu.open().readline())
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {"what": "forecast of a PyTorch step recorded without a GPU", "model": head["title"], "batch": head["batch"],
            "precision": head["precision"], "optimizer": head["optimizer"],
            "expandable_segments": head["settings"]["expandable_segments"],
            "peak_allocated_bytes": found["allocated"], "peak_reserved_bytes": found["reserved"],
            "peer": f"the GPU, {head['source']}", "peer_peak_allocated_bytes": peaks["allocated"],
            "peer_peak_reserved_bytes": peaks["reserved"], "ratio": round(found["reserved"] / peaks["reserved"], 5),
            "ratio_allocated": round(found["allocated"] / peaks["allocated"], 5),
            "ratio_live_bytes": round(found["live_bytes"] / peaks["reserved"], 5),
            "ratio_weights_only": round(found["weights_only"] / peaks["reserved"], 5),
            "ratio_deepsim": round(found["deepsim"] / peaks["reserved"], 5),
            "command": "tests/oracles/record.py --all --json results/record.json",
            "commit": commit.stdout.strip(), "machine": head["device"]}


def check(model, batch, precision, optimizer, mode, folder):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    path = folder / "x.rec"
    lockstep.record(build(model, batch, precision, optimizer), path, title=model, precision=precision,
                    optimizer=optimizer, micro_batch=batch, image_size=224, attention="cudnn")
    gpu = ROOT / f"results/recordings/{model}-{batch}-{precision}-{optimizer}{mode}.rec"
    stream = gpu_stream(gpu)
    ours = collections.Counter(size for born, _, size in recorded_step(path, 2) if born and size >= 512)
    there = collections.Counter(size for born, _, size in stream if born)
    known = KNOWN.get((model, batch, precision), {})
    missing = {size: count for size, count in ours.items() if 3 * (count - known.get(size, 0)) > there[size]}
    peaks, found = json.loads(gpu.open().readline())["peaks"], forecast(path, mode)
    errors = {key: found[key] / peaks[key] - 1 for key in ("allocated", "reserved")}
    good = not missing and abs(errors["allocated"]) < 0.01 and abs(errors["reserved"]) < 0.01
    print(f"{'ok  ' if good else 'FAIL'} {model} {batch} {precision}: {ours.total()} storages a step, all on the GPU; "
          f"allocated {found['allocated']} ({errors['allocated']:+.3%}), reserved {found['reserved']} "
          f"({errors['reserved']:+.3%})", flush=True)
    if missing:
        print(f"     not on the GPU: {missing}")
    return good, result_row(gpu, found, peaks)


def small_step(net, optimizer):
    device = next(net.parameters()).device
    inputs, labels = torch.randn(4, 8, device=device), torch.randint(0, 3, (4,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    return step


def record_small(make, path):
    def build():
        net, optimizer = make()
        return small_step(net, optimizer)
    return lockstep.record(build, path, title="small", micro_batch=4)


def check_regnet(folder):
    """Its widths are torch.arange(...).tolist(): simulated tensors without numbers gave a network of width 1."""
    header = lockstep.record(build("regnet_y_8gf", 8, "fp32", "sgd"), folder / "x.rec", title="regnet", micro_batch=8)
    own = sum(p.numel() for p in torchvision.models.regnet_y_8gf().parameters())
    good = header["parameters"] == own and header["checkpoint_bytes"] == 8 * own and header["layout"] == "channels_last"
    print(f"{'ok  ' if good else 'FAIL'} regnet_y_8gf: {header['parameters']} of {own} parameters, {header['layout']}")
    return good


def linear(device="cuda"):
    net = torch.nn.Linear(8, 3, device=device)
    return net, torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)


def moved_late():
    net, updates = linear("cpu")
    return net.to("cuda"), updates


def by_chance():
    net = torch.nn.Linear(8, int(torch.randint(3, 4, (1,)).item()))
    return net, torch.optim.SGD(net.parameters(), 0.01)


def recurrent():
    net = torch.nn.LSTM(8, 3)
    return net, torch.optim.SGD(net.parameters(), 0.01)


def count_calls(path, name):
    """How often an operator, or its backward, runs in each phase of a recording."""
    rows, calls = [], collections.Counter()
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == "o":
            rows.append((words[1], words[4]))
        elif words[0] == "r" and rows[int(words[1])][0].startswith(f"aten::{name}"):
            calls[rows[int(words[1])][1]] += 1
    return dict(calls)


def check_recurrent(folder):
    """Without cuDNN: weights, and what the backward of every time step keeps (4 gates of LSTM, a workspace of 5 of GRU)."""
    rows, steps, units, good = 4, 6, 16, True
    for kind, gates, kept in (("LSTM", 4, "_thnn_fused_lstm_cell"), ("GRU", 3, "_thnn_fused_gru_cell"), ("RNN", 1, "tanh")):
        def build():
            net = getattr(torch.nn, kind)(8, units, device="cuda")
            optimizer = torch.optim.SGD(net.parameters(), 0.01)
            series = torch.randn(steps, rows, 8, device="cuda")

            def step():
                optimizer.zero_grad(set_to_none=True)
                net(series)[0].sum().backward()
                optimizer.step()
            return step
        with torch.backends.cudnn.flags(enabled=False):
            header = lockstep.record(build, folder / "x.rec", title=kind, micro_batch=rows, steps=1)
        calls = count_calls(folder / "x.rec", kept)
        own = sum(p.numel() for p in getattr(torch.nn, kind)(8, units).parameters())
        holds = header["parameters"] == own == gates * units * (8 + units + 2) and calls == {"forward": steps, "backward": steps}
        print(f"{'ok  ' if holds else 'FAIL'} {kind} without cuDNN: {header['parameters']} parameters, {kept} {calls}")
        good &= holds
    return good


def check_refusals(folder):
    good = True
    for make, words in ((recurrent, "torch.nn.LSTM is not recorded as cuDNN computes it"), (by_chance, "reads a number off a tensor of [1]"),
                        (lambda: linear("cpu"), "27 of 27 parameters of SGD are on cpu"),
                        (moved_late, "27 of 27 parameters of SGD are on cpu")):
        try:
            record_small(make, folder / "x.rec")
            said = "nothing"
        except RuntimeError as error:
            said = str(error)
        good &= words in said
        print(f"{'ok  ' if words in said else 'FAIL'} refused: {said}")
    header = record_small(linear, folder / "x.rec")
    return good and header["parameters"] == 27 and header["checkpoint_bytes"] == 2 * 4 * 27


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = CASES + (SLOW if "--all" in sys.argv else [])
        results = [check(*case, pathlib.Path(folder)) for case in cases]
        good = [check_regnet(pathlib.Path(folder)), check_recurrent(pathlib.Path(folder)),
                check_refusals(pathlib.Path(folder))]
    good += [holds for holds, _ in results]
    if "--json" in sys.argv:
        rows = [row for _, row in results]
        pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(rows, indent=2) + "\n")
    print(f"record: {sum(good)} of {len(good)} agree")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
