#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: model task
"""Holds FC-DenseNet against a plain PyTorch version of the published description, and our figures of pixels against
torchmetrics: segment.py

The same weights must give the same logit maps (1e-4), gradients (relative 1e-3) and batch-norm statistics, in evaluation and
in training; fresh parameters are spread as Lasagne's HeUniform; the parameters are as many as published. Pixel accuracy, IoU
of each class and mean IoU equal torchmetrics' (fp32) to 1e-6, pixels without a class left out.
The probes are build/bin/zoo_torch_probe and build/bin/figures_probe.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchmetrics
from safetensors.torch import load_file, save_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin"
NEVER = 1e-12  # a dropout rate that drops nothing
LAYERS = {"fcdensenet56": (12, [4] * 11), "fcdensenet67": (16, [5] * 11),
          "fcdensenet103": (16, [4, 5, 7, 10, 12, 15, 12, 10, 7, 5, 4])}
PUBLISHED = {"fcdensenet56": 1376795, "fcdensenet67": 3463243, "fcdensenet103": 9322091}  # 11 classes

torch.set_num_threads(1)


class Layer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(channels, growth, 3, padding=1)

    def forward(self, x):
        return self.conv(self.norm(x).relu())


class Dense(nn.Module):
    def __init__(self, channels, growth, layers, whole):
        super().__init__()
        self.layers, self.whole = nn.ModuleList(Layer(channels + i * growth, growth) for i in range(layers)), whole

    def forward(self, x):
        new = []
        for layer in self.layers:
            new.append(layer(torch.cat([x, *new], 1)))
        return torch.cat([x, *new] if self.whole else new, 1)


class Down(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return nn.functional.max_pool2d(self.conv(self.norm(x).relu()), 2)


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convTrans = nn.ConvTranspose2d(channels, channels, 3, stride=2)

    def forward(self, x, skip):
        x, (h, w) = self.convTrans(x), skip.shape[2:]
        y0, x0 = (x.shape[2] - h) // 2, (x.shape[3] - w) // 2
        return torch.cat([x[:, :, y0:y0 + h, x0:x0 + w], skip], 1)


class FcDenseNet(nn.Module):
    def __init__(self, growth, layers, classes):
        super().__init__()
        self.firstconv, channels, skips = nn.Conv2d(3, 48, 3, padding=1), 48, []
        self.denseBlocksDown, self.transDownBlocks = nn.ModuleList(), nn.ModuleList()
        self.transUpBlocks, self.denseBlocksUp = nn.ModuleList(), nn.ModuleList()
        for count in layers[:5]:
            self.denseBlocksDown.append(Dense(channels, growth, count, True))
            channels += growth * count
            skips.append(channels)
            self.transDownBlocks.append(Down(channels))
        self.bottleneck = nn.Sequential()
        self.bottleneck.add_module("bottleneck", Dense(channels, growth, layers[5], False))
        channels = growth * layers[5]
        for i, count in enumerate(layers[6:]):
            self.transUpBlocks.append(Up(channels))
            self.denseBlocksUp.append(Dense(channels + skips[4 - i], growth, count, i == 4))
            channels = channels + skips[4 - i] + growth * count if i == 4 else growth * count
        self.finalConv = nn.Conv2d(channels, classes, 1)

    def forward(self, x):
        x, skips = self.firstconv(x), []
        for dense, down in zip(self.denseBlocksDown, self.transDownBlocks):
            skips.append(dense(x))
            x = down(skips[-1])
        x = self.bottleneck(x)
        for up, dense in zip(self.transUpBlocks, self.denseBlocksUp):
            x = dense(up(x, skips.pop()))
        return self.finalConv(x)


def he_uniform(model):
    for name, parameter in model.named_parameters():
        if parameter.dim() == 4:
            out, inside, height, width = parameter.shape
            fan_in = (out if "convTrans" in name else inside) * height * width  # transposed: [in, out, ...]
            nn.init.uniform_(parameter, -math.sqrt(6 / fan_in), math.sqrt(6 / fan_in))
        elif ".norm." not in name:
            nn.init.zeros_(parameter)


def ask(probe, request):
    probe.stdin.write(json.dumps(request) + "\n")
    probe.stdin.flush()
    return json.loads(probe.stdout.readline())


def pass_of(model, mode, images, direction):
    model.train(mode == "train")
    model.zero_grad(set_to_none=True)
    logits = model(images)
    (logits * direction).sum().backward()
    found = {f"{mode}.logits": logits.detach()}
    found.update({f"{mode}.grad.{name}": p.grad.clone() for name, p in model.named_parameters()})
    found.update({f"{mode}.buffer.{name}": b.detach().clone() for name, b in model.named_buffers() if "tracked" not in name})
    return found


def compare(probe, folder, name, height, width):
    torch.manual_seed(5)
    model = FcDenseNet(*LAYERS[name], 5)
    he_uniform(model)
    spread = {key: (p.mean().item(), (p - p.mean()).abs().mean().item(), p.numel()) for key, p in model.named_parameters()}
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-0.1, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.2, 0.2)
            elif hasattr(module, "bias") and module.bias is not None:
                module.bias.uniform_(-0.2, 0.2)
        model.eval()
        images, direction = torch.randn(2, 3, height, width), torch.randn(2, 5, height, width) / (height * width)
        scale = model(images).abs().max().clamp(min=1.0)
        model.finalConv.weight /= scale
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "weights.safetensors")
    save_file({"images": images, "direction": direction}, folder / "probe.safetensors")
    reply = ask(probe, {"model": {"name": name, "classes": 5, "dropout": NEVER}, "image_size": [height, width],
                        "weights": str(folder / "weights.safetensors"), "probe": str(folder / "probe.safetensors"),
                        "out": str(folder / "out.safetensors")})
    if "error" in reply:
        return [reply["error"]], {}
    model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    expected = {**pass_of(model, "eval", images, direction), **pass_of(model, "train", images, direction)}
    found, bad, worst = load_file(folder / "out.safetensors"), [], {}
    largest = max(t.abs().max().item() for n, t in expected.items() if ".grad." in n)
    for key in sorted(set(expected) | set(found)):
        if key not in expected or key not in found:
            bad.append(f"{key}: only {'there' if key in expected else 'here'}")
            continue
        error, kind = (expected[key] - found[key]).abs().max().item(), key.split(".")[1]
        if kind == "grad":
            error /= max(expected[key].abs().max().item(), 1e-3 * largest)
        worst[kind] = max(worst.get(kind, 0), error)
        if not error <= (1e-3 if kind == "grad" else 1e-4):
            bad.append(f"{key}: differs by {error:.2e}")
    for key, (mean, deviation, count) in spread.items():
        ours, allowed = reply["initial"][key], 6 * math.sqrt(2 / count) * deviation + 1e-9
        if abs(ours[0] - mean) > allowed or abs(ours[1] - deviation) > allowed:
            bad.append(f"initial {key}: {mean:.3g} +- {deviation:.3g} there, {ours[0]:.3g} +- {ours[1]:.3g} here")
    return bad, worst


def pixel_figures():
    torch.manual_seed(1)
    probe = subprocess.Popen([BIN / "figures_probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    worst = 0
    for case in range(40):
        classes, pixels, images = 2 + case % 7, 5 + 37 * (case % 3), 1 + case % 5
        used = max(1, classes - case % 3)  # some classes are nowhere
        labels, answers = (torch.randint(0, used, (images, pixels)) for _ in range(2))
        labels[torch.rand(images, pixels) < 0.2] = 255
        if (labels == 255).all():
            continue
        ours = ask(probe, {"classes": classes, "labels": labels.tolist(), "answers": answers.tolist()})
        keep = labels != 255
        kind = {"task": "multiclass", "num_classes": classes}
        accuracy = torchmetrics.functional.accuracy(answers[keep], labels[keep], average="micro", **kind).item()
        iou = torchmetrics.functional.jaccard_index(answers[keep], labels[keep], average="none", **kind).double()
        seen = torch.bincount(labels[keep], minlength=classes) + torch.bincount(answers[keep], minlength=classes) > 0
        worst = max(worst, abs(ours["pixel_accuracy"] - accuracy), abs(ours["miou"] - iou[seen].mean().item()))
        for i, each in enumerate(ours["iou"]):
            worst = max(worst, abs(each - iou[i].item()) if seen[i] else float(each is not None))
    return worst


def main():
    failures, probe = 0, subprocess.Popen([BIN / "zoo_torch_probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as temporary:
        for name, height, width in (("fcdensenet56", 64, 64), ("fcdensenet56", 45, 70), ("fcdensenet67", 32, 48)):
            bad, worst = compare(probe, pathlib.Path(temporary), name, height, width)
            print("ok  " if not bad else "FAIL", name, f"{height}x{width}", "  ".join(f"{k} {v:.1e}" for k, v in worst.items()))
            for line in bad[:12]:
                print("    ", line)
            failures += bool(bad)
    for name, (growth, layers) in LAYERS.items():
        with torch.device("meta"):
            theirs = sum(p.numel() for p in FcDenseNet(growth, layers, 11).parameters())
        ours = ask(probe, {"model": {"name": name, "classes": 11}, "image_size": 224})["parameters"]
        good = ours == theirs == PUBLISHED[name]
        print("ok  " if good else "FAIL", f"{name}: {ours:,} parameters", "" if good else f"{theirs:,} there")
        failures += not good
    off = pixel_figures()
    print("ok  " if off < 1e-6 else "FAIL", f"pixel accuracy and IoU: {off:.1e} from torchmetrics")  # which counts in fp32
    failures += off >= 1e-6
    return 1 if failures else 0


sys.exit(main())
