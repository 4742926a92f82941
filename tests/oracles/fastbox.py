#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: model objective
"""Holds FastBox and its loss against a second one, written in PyTorch from KittiBox's description: fastbox.py [ENCODER...]

The same weights must give the same outputs (1e-4), the same four parts of the loss (relative 1e-4) and the same
gradients (relative to the largest of a tensor), in evaluation and in training mode. The encoders are torchvision's,
the second look is torch's own grid_sample. The probe is build/bin/fastbox_torch_probe (or $LOCKSTEP_BUILD/bin/...).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "fastbox_torch_probe"
NEVER = 1e-12  # a dropout rate that drops nothing
HEIGHT, WIDTH, BATCH, CELL = 96, 160, 2, 32
ROWS, COLUMNS = HEIGHT // CELL, WIDTH // CELL
EARLY_CHANNELS = 256

torch.set_num_threads(1)


class FastBox(torch.nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.trunk = {"vgg16": lambda: torchvision.models.vgg16(weights=None).features,
                      "googlenet": lambda: torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False)
                      }.get(encoder, lambda: torchvision.models.get_model(encoder, weights=None))()
        if encoder != "vgg16":
            self.trunk.fc = torch.nn.Identity()
        deep, early = {"vgg16": (512, 512), "googlenet": (1024, 480), "resnet18": (512, 128), "resnet50": (2048, 512)}[encoder]
        self.early_channels = min(early, EARLY_CHANNELS)
        rezoom = 500 + 9 * self.early_channels
        shapes = {"inner": (500, deep), "box": (4, 500), "confidence": (2, 500), "rezoom": (128, rezoom),
                  "confidence2": (2, 128), "delta": (4, 128)}
        self.decoder = torch.nn.ParameterDict(
            {name: torch.nn.Parameter(torch.empty(shape).uniform_(-.1, .1)) for name, shape in shapes.items()})

    def features(self, image):
        """The map of stride 32 and that of stride 8."""
        if self.encoder == "vgg16":
            early = self.trunk[:23](image)  # behind conv4_3 and its ReLU
            return self.trunk[23:](early), early
        if self.encoder == "googlenet":
            t = self.trunk
            x = t.maxpool2(t.conv3(t.conv2(t.maxpool1(t.conv1(image)))))
            early = t.inception3b(t.inception3a(x))
            x = t.maxpool3(early)
            for name in ("4a", "4b", "4c", "4d", "4e"):
                x = getattr(t, "inception" + name)(x)
            return t.inception5b(t.inception5a(t.maxpool4(x))), early
        t = self.trunk
        early = t.layer2(t.layer1(t.maxpool(t.relu(t.bn1(t.conv1(image))))))
        return t.layer4(t.layer3(early)), early

    def forward(self, image):
        deep, early = self.features(image)
        early = early[:, :self.early_channels]
        w = self.decoder
        hidden = deep.flatten(2).transpose(1, 2) * .1 @ w["inner"].T  # [batch, cells, 500]
        box = 50 * (hidden @ w["box"].T)
        confidence = hidden @ w["confidence"].T
        cells = torch.arange(ROWS * COLUMNS)
        x = CELL * (cells % COLUMNS) + CELL / 2 + box[..., 0]  # centre of the box in pixels of the image
        y = CELL * torch.div(cells, COLUMNS, rounding_mode="floor") + CELL / 2 + box[..., 1]
        seen = []
        for dx in (-.25, 0, .25):
            for dy in (-.25, 0, .25):
                at = torch.stack([(x + dx * box[..., 2]) / 8 * 2 / (early.shape[3] - 1) - 1,
                                  (y + dy * box[..., 3]) / 8 * 2 / (early.shape[2] - 1) - 1], -1)  # [batch, cells, 2]
                looked = F.grid_sample(early, at[:, :, None], mode="bilinear", padding_mode="border", align_corners=True)
                seen.append(looked[..., 0].transpose(1, 2))  # [batch, cells, channels]
        again = F.relu(torch.cat([hidden, torch.cat(seen, -1) / 1000], -1) @ w["rezoom"].T)
        return {"confidence": confidence, "box": box, "confidence2": 50 * (again @ w["confidence2"].T),
                "delta": 5 * (again @ w["delta"].T)}

    def named_weights(self):
        prefix = {"vgg16": "features."}.get(self.encoder, "")
        for name, tensor in [*self.trunk.named_parameters(), *self.trunk.named_buffers()]:
            if not name.endswith("num_batches_tracked"):
                yield prefix + name, tensor
        for name, tensor in self.decoder.items():
            yield f"decoder.{name}.weight", tensor


def losses(out, wanted):
    """Sums over the images of means over the cells."""
    cells = ROWS * COLUMNS
    label, truth, mask = wanted["object"].long(), wanted["box"], wanted["mask"]
    first = F.cross_entropy(out["confidence"].flatten(0, 1), label.flatten(), reduction="none").view_as(mask)
    error = (out["box"][..., :2] - truth[..., :2]) / truth[..., 2:].clamp(min=1)
    near = (label == 1) & ((error ** 2).sum(-1) < .2 ** 2)
    second = F.cross_entropy(out["confidence2"].flatten(0, 1), near.long().flatten(), reduction="none").view_as(mask)
    corrected = torch.minimum((out["box"] + out["delta"] - truth) ** 2, torch.tensor(100.))
    return {"confidence_loss": (mask * first).sum() / cells,
            "box_loss": .1 * (label[..., None] * (out["box"] - truth).abs()).sum() / cells,
            "confidence2_loss": .1 * (mask * second).sum() / cells,
            "delta_loss": .1 * .03 * (label[..., None] * corrected).sum() / cells}, near


def randomise(model):
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-.1, .1)
            module.running_var.uniform_(.5, 1.5)
            module.weight.data.uniform_(.5, 1.5)
            module.bias.data.uniform_(-.2, .2)
        elif isinstance(module, torch.nn.Conv2d):
            module.weight.data.normal_(0, (2 / module.weight[0].numel()) ** .5)
            if module.bias is not None:
                module.bias.data.uniform_(-.1, .1)


def lively_scale(model, image):
    """Boxes of some tens of pixels, and a second look that counts: weights of the decoder scaled to what comes in."""
    w = model.decoder
    deep, early = model.features(image)
    w["inner"] *= 10 / (deep.std() * deep.shape[1] ** .5)
    w["rezoom"][:, 500:] *= 1000 / early.std()
    out = model(image)
    w["box"] *= 15 / out["box"].std()
    for name in ("confidence", "confidence2"):
        w[name] /= out[name].std()
    w["delta"] *= 5 / out["delta"].std()
    return model(image)


def make_targets(out):
    """Half of the cells have an object, half of those are near it; a fifth of all is masked."""
    object_ = (torch.rand(BATCH, ROWS * COLUMNS) < .5).float()
    truth = out["box"].detach().clone()
    size = torch.rand(BATCH, ROWS * COLUMNS, 2) * 80 + 10
    truth[..., 2:] = size
    truth[..., :2] += torch.where(torch.rand(BATCH, ROWS * COLUMNS, 1) < .5, .05, .6) * size
    truth *= object_[..., None]
    return {"object": object_, "box": truth, "mask": (torch.rand(BATCH, ROWS * COLUMNS) < .8).float()}


def reference(model, mode, probe):
    model.train(mode == "train")
    model.zero_grad(set_to_none=True)
    out = model(probe["image"])
    parts, near = losses(out, probe)
    sum(parts.values()).backward()
    found = {f"{mode}.output.{name}": value.detach() for name, value in out.items()}
    found |= {f"{mode}.loss.{name}": value.detach() for name, value in parts.items()}
    for name, weight in model.named_weights():
        if weight.grad is not None:
            found[f"{mode}.grad.{name}"] = weight.grad.clone()
    return found, near


def differences(expected, found):
    bad, worst = [], {"output": 0., "loss": 0., "grad": 0.}
    largest = max(t.abs().max().item() for n, t in expected.items() if ".grad." in n)
    for name in sorted(set(expected) | set(found)):
        if name not in expected or name not in found or expected[name].shape != found[name].shape:
            bad.append(f"{name}: not the same shape on both sides")
            continue
        theirs, ours = expected[name], found[name]
        kind = name.split(".")[1]
        error = (theirs - ours).abs().max().item()
        scale = theirs.abs().max().item()
        error /= max(scale, 1e-3 * largest) if kind == "grad" else max(scale, 1.) if kind == "output" else max(scale, 1e-3)
        worst[kind] = max(worst[kind], error)
        bound = 1e-4
        if not error <= bound:
            bad.append(f"{name}: differs by {error:.2e}, allowed {bound:.0e}")
    return bad, worst


def compare(ask, folder, encoder):
    torch.manual_seed(5)
    model = FastBox(encoder)
    probe = {"image": torch.randn(BATCH, 3, HEIGHT, WIDTH)}
    with torch.no_grad():
        randomise(model)
        model.eval()
        probe |= make_targets(lively_scale(model, probe["image"]))
    save_file({name: tensor.detach().contiguous() for name, tensor in model.named_weights()}, folder / "weights.safetensors")
    save_file({name: tensor.contiguous() for name, tensor in probe.items()}, folder / "probe.safetensors")
    reply = ask({"model": {"name": f"fastbox_{encoder}", "dropout": NEVER}, "image_size": [HEIGHT, WIDTH],
                 "weights": str(folder / "weights.safetensors"), "probe": str(folder / "probe.safetensors"),
                 "out": str(folder / "out.safetensors")})
    if "error" in reply:
        return [reply["error"]], {}
    model, probe["image"] = (each.to(memory_format=torch.channels_last) for each in (model, probe["image"]))
    expected, bad = {}, []
    for mode in ("eval", "train"):
        found, near = reference(model, mode, probe)
        expected |= found
        if mode == "eval" and not 0 < near.sum() < probe["object"].sum():
            bad.append("the targets do not ask for both answers of the second look")
    missed, worst = differences(expected, load_file(folder / "out.safetensors"))
    if reply["fresh"] or reply["ignored"]:
        bad.append(f"not every tensor was matched: {reply}")
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != reply["parameters"]:
        bad.append(f"{count} parameters there, {reply['parameters']} here")
    return bad + missed, worst


def main():
    chosen, failures = sys.argv[1:] or ["resnet18", "resnet50", "vgg16", "googlenet"], 0
    process = subprocess.Popen([str(PROBE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(request):
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with tempfile.TemporaryDirectory() as temporary:
        for encoder in chosen:
            bad, worst = compare(ask, pathlib.Path(temporary), encoder)
            figures = "  ".join(f"{kind} {value:.1e}" for kind, value in worst.items())
            print(f"{'ok  ' if not bad else 'FAIL'} fastbox_{encoder} {figures}", flush=True)
            for line in bad[:12]:
                print(f"     {line}")
            failures += bool(bad)
    print(f"fastbox: {failures} failures")
    return 1 if failures else 0


sys.exit(main())
