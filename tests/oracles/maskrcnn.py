#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: kernel model objective
"""Faster and Mask R-CNN against torchvision's: maskrcnn.py [NAME...].

From the same lively weights, on images that fill their canvas and on some that do not: the same boxes, scores, labels and
masks; with the first candidates chosen on both sides the same losses, and the same gradients of every parameter. The
losses of a batch of two here are those of two batches of one there: of each image, whatever it shares a batch with.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

import torch
from safetensors.torch import load_file, save_file
from torchvision.models.detection import FasterRCNN, MaskRCNN
from torchvision.models import mobilenet_v2
from torchvision.models.detection.backbone_utils import BackboneWithFPN, resnet_fpn_backbone
from torchvision.models.detection.image_list import ImageList

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin" / "maskrcnn_torch_probe"
CLASSES, SLOTS, MASK = 5, 12, 112
# Name, canvas, what of it is image (of each image of the batch), mode of the batch norms.
ROWS = [
    ("maskrcnn_resnet18_fpn", (128, 160), [(128, 160)], "train"),
    ("maskrcnn_resnet18_fpn", (160, 128), [(131, 103)], "frozen"),
    ("maskrcnn_resnet18_fpn", (128, 160), [(128, 160), (101, 117)], "frozen"),
    ("maskrcnn_resnet50_fpn", (128, 128), [(128, 113)], "frozen"),
    ("maskrcnn_resnet101_fpn", (128, 128), [(128, 128)], "frozen"),
    ("fasterrcnn_resnet18_fpn", (256, 224), [(250, 224)], "frozen"),
    ("fasterrcnn_mobilenet_v2_fpn", (128, 160), [(128, 160)], "frozen"),
]
COUNTED = {"maskrcnn_resnet50_fpn": 44454513, "fasterrcnn_resnet50_fpn": 41808406}  # with 91 classes and plain norms
SIZES = {"proposals": 300, "evaluated_proposals": 150, "anchor_samples": 64, "roi_slots": 48, "detections": 30}


MOBILE_MAPS = {"3": 24, "6": 32, "13": 96, "17": 320}  # layer -> channels: the last of each stride


def make_backbone(name):
    if name.split("_")[1] == "mobilenet":
        layers = {layer: str(level) for level, layer in enumerate(MOBILE_MAPS)}
        return BackboneWithFPN(mobilenet_v2(weights=None).features, layers, list(MOBILE_MAPS.values()), 256)
    return resnet_fpn_backbone(backbone_name=name.split("_")[1], weights=None, norm_layer=torch.nn.BatchNorm2d, trainable_layers=5)


def make_reference(name):
    backbone = make_backbone(name)
    kind = MaskRCNN if name.startswith("mask") else FasterRCNN
    return kind(backbone, CLASSES + 1, rpn_pre_nms_top_n_train=SIZES["proposals"],
                rpn_post_nms_top_n_train=SIZES["proposals"], rpn_pre_nms_top_n_test=SIZES["evaluated_proposals"],
                rpn_post_nms_top_n_test=SIZES["evaluated_proposals"], rpn_batch_size_per_image=SIZES["anchor_samples"],
                box_batch_size_per_image=SIZES["roi_slots"], box_detections_per_img=SIZES["detections"])


def randomise(model, images, shown):
    """Lively norms; outputs of a size at which scores differ, boxes move and losses have something to say."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.uniform_(0.5, 1.0)
            module.bias.uniform_(-0.2, 0.2)
    for name, parameter in model.named_parameters():
        if name.endswith("bias") and ".bn" not in name and "downsample" not in name:
            parameter.uniform_(-0.1, 0.1)
    model.eval()
    seen = {}
    heads = model.roi_heads
    wanted = {model.rpn.head.cls_logits: 2.0, model.rpn.head.bbox_pred: 0.3, heads.box_predictor.cls_score: 2.0,
              heads.box_predictor.bbox_pred: 1.0}
    features = model.backbone(images)
    scale = max(value.std().item() for value in features.values())
    for block in model.backbone.fpn.layer_blocks:
        block[0].weight /= scale
    hooks = [layer.register_forward_hook(lambda module, _, out: seen.__setitem__(module, out)) for layer in wanted]
    if heads.has_mask():
        wanted[heads.mask_predictor.mask_fcn_logits] = 2.0
        hooks.append(heads.mask_predictor.mask_fcn_logits.register_forward_hook(
            lambda module, _, out: seen.__setitem__(module, out)))
    for _ in range(2):  # what comes later sees other regions once the first are scaled
        evaluate(model, images, shown)
        for layer, size in wanted.items():
            if layer in seen and seen[layer].numel() > 1:
                layer.weight *= size / seen[layer].std()
    for hook in hooks:
        hook.remove()


def evaluate(model, images, shown):
    model.eval()
    with torch.no_grad():
        features = model.backbone(images)
        proposals, _ = model.rpn(ImageList(images, shown), features)
        found, _ = model.roi_heads(features, proposals, shown)
    return found


def draw_objects(shown, count):
    """Boxes with fractions, and masks that are circles cut off at the whole pixels of the box."""
    height, width = shown
    sizes = torch.tensor([[0.2, 0.3], [0.5, 0.4], [0.35, 0.6], [0.12, 0.1], [0.6, 0.7]])[:count] * torch.tensor([width, height])
    corner = torch.rand(len(sizes), 2) * (torch.tensor([width, height]) - sizes)
    boxes = torch.cat([corner, corner + sizes], 1)
    masks = torch.zeros(len(sizes), height, width, dtype=torch.uint8)
    rows, columns = torch.arange(height)[:, None], torch.arange(width)[None]
    for mask, box in zip(masks, boxes):
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        mask[((rows - y) / (box[3] - box[1])) ** 2 + ((columns - x) / (box[2] - box[0])) ** 2 < 0.22] = 1
        inside = (rows >= box[1].floor()) & (rows < box[3].ceil()) & (columns >= box[0].floor()) & (columns < box[2].ceil())
        mask[~inside] = 0
    return boxes, torch.randint(1, CLASSES + 1, (len(sizes),)), masks


def fields_of(images, shown, targets, with_masks):
    fields = {"image": images, "shown": torch.tensor(shown, dtype=torch.float32), "boxes": torch.zeros(len(shown), SLOTS, 4),
              "labels": torch.zeros(len(shown), SLOTS, dtype=torch.int64)}
    if with_masks:
        fields["masks"] = torch.zeros(len(shown), SLOTS, MASK, MASK, dtype=torch.uint8)
    for at, target in enumerate(targets):
        for i, (box, label, mask) in enumerate(zip(target["boxes"], target["labels"], target["masks"])):
            slot = 2 * i  # every second one stays empty
            fields["boxes"][at, slot], fields["labels"][at, slot] = box, label
            if not with_masks:
                continue
            top, left = int(box[1].floor()), int(box[0].floor())
            crop = mask[top:int(box[3].ceil()), left:int(box[2].ceil())]
            assert max(crop.shape) <= MASK, "this oracle is for masks that are not scaled"
            fields["masks"][at, slot, :crop.shape[0], :crop.shape[1]] = crop
    return fields


def learn(model, images, shown, targets, mode):
    """The losses of each image, as a batch of its own behind the trunk; the gradients of their sum."""
    model.train()
    if mode == "frozen":
        model.backbone.eval()
    maps, each = model.backbone(images), []
    for at, (size, target) in enumerate(zip(shown, targets)):
        features = {key: value[at:at + 1] for key, value in maps.items()}
        with mock.patch("torch.randperm", lambda n, device=None: torch.arange(n, device=device)):
            proposals, losses = model.rpn(ImageList(images[at:at + 1], [size]), features, [target])
            _, more = model.roi_heads(features, proposals, [size], [target])
        losses.update(more)
        each.append(losses)
    sum(sum(losses.values()) for losses in each).backward()
    expected = {name: torch.stack([losses[name].detach() for losses in each]) for name in each[0]}
    for name, parameter in model.named_parameters():
        expected["grad." + name] = parameter.grad
    return expected


def compare(expected, ours):
    bad, worst = [], {"found": 0.0, "loss": 0.0, "grad": 0.0}
    largest = max(value.abs().max().item() for name, value in expected.items() if name.startswith("grad."))
    for name in sorted(set(expected) | set(ours)):
        if name not in expected or name not in ours:
            bad.append(f"{name}: only {'there' if name in expected else 'here'}")
            continue
        theirs, here = expected[name], ours[name]
        if theirs.shape != here.shape:
            bad.append(f"{name}: {list(theirs.shape)} there, {list(here.shape)} here")
            continue
        kind = name.split(".")[0].split("_")[0]
        error = (theirs - here).abs().max().item() if theirs.numel() else 0.0
        if kind == "grad":
            error /= max(theirs.abs().max().item(), 1e-3 * largest)
        elif name.startswith("found.boxes"):
            error /= 100  # pixels
        bound = 1e-3 if kind == "grad" else 1e-4
        worst[kind] = max(worst[kind], error)
        if not error <= bound:
            bad.append(f"{name}: differs by {error:.2e}, allowed {bound:.0e}")
    return bad, worst


def job_of(name, canvas, classes=CLASSES, **sizes):
    return {"name": "oracle", "task": "instances", "data": {"train": "synthetic", "samples": 1, "image_size": list(canvas)},
            "model": {"name": name, "classes": classes}, "training": {"global_batch": 1, "steps": 1},
            "instances": {"masks": name.startswith("mask"), "slots": SLOTS, "mask_size": MASK, "sampler": "first", **sizes}}


def check(ask, folder, row):
    name, canvas, shown, mode = row
    torch.manual_seed(11)
    model = make_reference(name)
    images = torch.zeros(len(shown), 3, *canvas)
    for image, (height, width) in zip(images, shown):
        image[:, :height, :width] = torch.randn(3, height, width)
    with torch.no_grad():
        randomise(model, images[:1], shown[:1])
    targets = [dict(zip(("boxes", "labels", "masks"), draw_objects(size, 5 - 3 * at))) for at, size in enumerate(shown)]
    fields = fields_of(images, shown, targets, name.startswith("mask"))
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "weights.safetensors")
    save_file({key: value.contiguous() for key, value in fields.items()}, folder / "probe.safetensors")
    reply = ask({"job": job_of(name, canvas, **SIZES), "weights": str(folder / "weights.safetensors"),
                 "probe": str(folder / "probe.safetensors"), "out": str(folder / "out.safetensors"), "mode": mode})
    if "error" in reply:
        return [reply["error"]], {}, 0
    model.to(memory_format=torch.channels_last)  # the same order of sums
    images = images.to(memory_format=torch.channels_last)
    expected, ours, counts = {}, load_file(folder / "out.safetensors"), []
    there = ours["found.scores"] > 0
    for at, found in enumerate(evaluate(model, images, shown)):
        counts.append(len(found["scores"]))
        for key, value in found.items():  # without the image's dimension and the empty slots
            expected[f"found.{key}.{at}"] = value[:, 0] if key == "masks" else value.float()  # [detections, 1, 28, 28]
            ours[f"found.{key}.{at}"] = ours[f"found.{key}"][at][there[at]]
    for key in found:
        del ours[f"found.{key}"]
    expected.update(learn(model, images, shown, targets, mode))
    bad, worst = compare(expected, ours)
    if reply["fresh"] or reply["ignored"]:
        bad.append(f"not every tensor was matched: {reply}")
    if min(counts) < 5:
        bad.append(f"{counts} detections: nothing to compare")
    return bad, worst, sum(counts)


def main():
    chosen, failures = sys.argv[1:], 0
    process = subprocess.Popen([str(PROBE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(request):
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        for row in ROWS:
            if chosen and row[0] not in chosen:
                continue
            bad, worst, count = check(ask, pathlib.Path(temporary), row)
            figures = "  ".join(f"{kind} {value:.1e}" for kind, value in worst.items())
            print(f"{'ok  ' if not bad else 'FAIL'} {row[0]} {len(row[2])} x {row[1]} {row[3]}: {count} detections  {figures}", flush=True)
            for line in bad[:12]:
                print(f"     {line}")
            failures += bool(bad)
    for name, count in COUNTED.items():
        ours = ask({"job": job_of(name, (64, 64), classes=90)})["parameters"]
        print(f"{'ok  ' if ours == count else 'FAIL'} {name}: {ours:,} parameters" +
              ("" if ours == count else f", {count:,} there"), flush=True)
        failures += ours != count
    print(f"maskrcnn: {failures} failures")
    return 1 if failures else 0


sys.exit(main())
