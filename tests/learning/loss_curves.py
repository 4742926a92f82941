#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loss of a Mask R-CNN step by step, beside torchvision's from the same weights over the same samples.

loss_curves.py [--steps N] [--size HEIGHT] [--batch N] [--network NAME] [--rate R] [--device cpu|cuda] [--folder DIR] [--prepare]
               [--starts N] [--json FILE]

Both start from one file of torchvision's weights, with the batch norms held, and take the first candidates wherever a
sampler would draw (instances.sampler=first; torch.randperm replaced). `train --history` says which samples each step took
and what its loss was; torchvision takes the same ones, an image at a time, the losses averaged, since its own mean over
the masks of a batch weighs images by their objects. Scenes are drawn in the size that the network sees: no pixel is
resampled. --prepare draws and rasterises them into DIR (which needs pycocotools) and ends; with such a DIR the rest runs
where that is missing. On a GPU torchvision runs twice: how far it is from itself is the measure of what is chance.

Rounding grows from step to step, and once it tips a choice (which candidates are kept) the curves go their own ways. So
the step itself is judged by the median of --starts short runs from other weights and samples, and one long curve by means:
of five starts on a CPU these differed by 2.5e-4 to 2.3e-3 over 20 steps.
"""
import argparse
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
from unittest import mock

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = os.environ.get("LOCKSTEP_BIN") or str(pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep")
CLASSES = 3
MOMENTUM, DECAY = 0.9, 1e-4
# The relative difference of the losses of steps 1 to 3, median over the starts: rounding grows thirtyfold a step.
FIRST_BOUNDS = (1e-5, 1e-4, 1e-3)
FIRST = len(FIRST_BOUNDS)
WINDOW, WINDOW_BOUND = 20, 0.05  # of the means of so many steps in a row, anywhere
SIZES = {"proposals": 300, "evaluated_proposals": 150, "anchor_samples": 64, "roi_slots": 48, "detections": 30}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def lockstep(folder, *words):
    done = subprocess.run([LOCKSTEP, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def prepare(folder, height, count):
    """Shards, and beside them what torchvision takes of each sample."""
    from PIL import Image
    from pycocotools import mask as coco
    lockstep(folder, "prep", "--synthesize", "coco", "--count", str(count), "--classes", str(CLASSES), "--image-size", str(height), "--to", "scenes")
    lockstep(folder, "prep", "scenes", "--to", "set")
    samples = {}
    for shard in json.loads((folder / "set/train/shards.json").read_text())["shardlist"]:
        with tarfile.open(folder / "set/train" / shard["url"]) as tar:
            members = {}
            for member in tar:
                key, _, extension = member.name.partition(".")
                members.setdefault(key, {})[extension] = tar.extractfile(member).read()
        for key in members:
            entry = members[key]
            about = json.loads(entry["json"])
            image = next(entry[extension] for extension in ("png", "jpg") if extension in entry)
            pixels = numpy.asarray(Image.open(io.BytesIO(image)).convert("RGB"))
            high, wide = pixels.shape[:2]
            boxes, labels, masks = [], [], []
            for found in about.get("objects", []):
                x, y, w, h = found["bbox"]
                outline = found["segmentation"]
                runs = coco.merge(coco.frPyObjects(outline, high, wide)) if isinstance(outline, list) else outline
                boxes.append([x, y, x + w, y + h]), labels.append(found["label"] + 1), masks.append(coco.decode(runs))
            at = len(samples) // 4
            samples |= {f"{at}.pixels": pixels, f"{at}.boxes": numpy.array(boxes, numpy.float32).reshape(-1, 4),
                        f"{at}.labels": numpy.array(labels, numpy.int64), f"{at}.masks": numpy.array(masks, numpy.uint8).reshape(-1, high, wide)}
    numpy.savez_compressed(folder / "samples.npz", **samples)


def sample_of(samples, index, device):
    pixels = torch.from_numpy(samples[f"{index}.pixels"]).to(device).float() / 255
    image = ((pixels - torch.tensor(MEAN, device=device)) / torch.tensor(STD, device=device)).permute(2, 0, 1)
    target = {name: torch.from_numpy(samples[f"{index}.{name}"]).to(device) for name in ("boxes", "labels", "masks")}
    return image, target


def reference(network):
    from torchvision.models.detection import MaskRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    backbone = resnet_fpn_backbone(backbone_name=network.split("_")[1], weights=None, norm_layer=torch.nn.BatchNorm2d, trainable_layers=5)
    return MaskRCNN(backbone, CLASSES + 1, rpn_pre_nms_top_n_train=SIZES["proposals"], rpn_post_nms_top_n_train=SIZES["proposals"],
                    rpn_batch_size_per_image=SIZES["anchor_samples"], box_batch_size_per_image=SIZES["roi_slots"])


def write_weights(folder, network, samples, start):
    """Fresh ones, whose held norms give the pyramid values of about 1."""
    torch.manual_seed(11 + start)
    model = reference(network).eval()
    with torch.no_grad():
        for module in model.backbone.body.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.fill_(0.5)
        image, _ = sample_of(samples, 0, "cpu")
        scale = max(value.std().item() for value in model.backbone(image[None]).values())
        for block in list(model.backbone.fpn.layer_blocks) + list(model.backbone.fpn.inner_blocks):
            block[0].weight /= scale ** 0.5
    torch.save(model.state_dict(), folder / "start.pth")


def ours(folder, args, wide, start, num_steps):
    steps_per_epoch = -(-args.count // args.batch)
    job = {"name": "curves", "task": "instances",
           "data": {"train": "set/train", "image_size": [args.size, wide], "augment": "none", "order": "full", "threads": 1},
           "model": {"name": args.network, "weights": "start.pth"},
           "instances": {"slots": 8, "min_size": args.size, "max_size": wide, "mask_size": min(512, wide), "sampler": "first", **SIZES},
           "training": {"global_batch": args.batch, "precision": "fp32", "seed": 5 + start,
                        "phases": [{"epochs": num_steps / steps_per_epoch, "freeze_norm": True}],
                        "optimizer": {"name": "sgd", "lr": args.rate, "momentum": MOMENTUM, "weight_decay": DECAY, "decay_norm_and_bias": True},
                        "schedule": {"name": "constant"}},
           "evaluation": {"every_epochs": 0}}
    (folder / "job.json").write_text(json.dumps(job))
    words = ["--device", "cuda"] if args.device == "cuda" else []
    run = f"run-{start}-{num_steps}"
    lockstep(folder, "train", "job.json", "--run", run, "--history", *words)
    lines = [json.loads(line) for line in (folder / run / "history/rank-0.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "samples" in line]
    if len(steps) != num_steps:
        sys.exit(f"{len(steps)} steps, {num_steps} are expected")
    return steps


def theirs(folder, args, steps, samples):
    from torchvision.models.detection.image_list import ImageList
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    device = args.device
    model = reference(args.network)
    model.load_state_dict(torch.load(folder / "start.pth"))
    model.to(device, memory_format=torch.channels_last).train()
    model.backbone.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate, momentum=MOMENTUM, weight_decay=DECAY)
    losses = []
    with mock.patch("torch.randperm", lambda n, device=None: torch.arange(n, device=device)):
        for step in steps:
            optimizer.zero_grad(set_to_none=True)
            total = 0.0
            for index in step["samples"]:
                image, target = sample_of(samples, index, device)
                images, shown = image[None].contiguous(memory_format=torch.channels_last), [tuple(image.shape[1:])]
                features = model.backbone(images)
                proposals, some = model.rpn(ImageList(images, shown), features, [target])
                _, more = model.roi_heads(features, proposals, shown, [target])
                loss = sum(some.values()) + sum(more.values())
                (loss / len(step["samples"])).backward()
                total += loss.item() / len(step["samples"])
            optimizer.step()
            losses.append(total)
    return losses


def relative_differences(ours, theirs):
    return [abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours, theirs)]


def follow(folder, args, samples, start, num_steps, repeats=1):
    """The losses here, and `repeats` times there."""
    write_weights(folder, args.network, samples, start)
    steps = ours(folder, args, samples["0.pixels"].shape[1], start, num_steps)
    return [step["loss"] for step in steps], [theirs(folder, args, steps, samples) for _ in range(repeats)]


def in_short(found):
    return f"{found:.1e}" if isinstance(found, float) else " ".join(f"{value:.1e}" for value in found)


def differences(ours, theirs):
    relative = relative_differences(ours, theirs)
    means = [[sum(curve[i:i + WINDOW]) / WINDOW for i in range(len(curve) - WINDOW + 1)] for curve in (ours, theirs)]
    found = {"first": relative[:FIRST], "largest": max(relative)}
    return found | ({"means": max(abs(a - b) / b for a, b in zip(*means))} if means[0] else {})


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("steps", 20), ("size", 96), ("batch", 2), ("count", 16), ("starts", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=0.002)
    parser.add_argument("--network", default="maskrcnn_resnet18_fpn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder"), parser.add_argument("--json"), parser.add_argument("--prepare", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.folder or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "samples.npz").exists():
            prepare(folder, args.size, args.count)
        if args.prepare:
            return 0
        samples = dict(numpy.load(folder / "samples.npz"))
        args.count = len(samples) // 4  # of those drawn, some are for validation
        here, runs = follow(folder, args, samples, 0, args.steps, repeats=2 if args.device == "cuda" else 1)
        found = [differences(here, runs[0])]
        for start in range(1, args.starts):
            others, peers = follow(folder, args, samples, start, FIRST)
            found.append(differences(others, peers[0]))
    print("step  ours       torchvision")
    for at in sorted({0, 1, 2, 4, 9, 19, 49, 99, 149, args.steps - 1}):
        if at < args.steps:
            print(f"{at + 1:4}  {here[at]:.6f}  " + "  ".join(f"{run[at]:.6f}" for run in runs))
    first, means = [statistics.median(row["first"][at] for row in found) for at in range(FIRST)], found[0].get("means", 0.0)
    for start, row in enumerate(found):
        print(f"start {start}, relative differences to torchvision: " + ", ".join(f"{key} {in_short(value)}" for key, value in row.items()))
    print(f"medians of steps 1 to {FIRST}: {in_short(first)}")
    row = {"what": "loss curves from the same weights and samples", "model": args.network, "batch": args.batch, "precision": "fp32",
           "learning_rate": args.rate, "steps": args.steps, "image_height": args.size, "device": args.device, "peer": f"torchvision, PyTorch {torch.__version__}",
           "relative_difference": {"first": first, "means": means}, "of_starts": found, "losses": here, "peer_losses": runs[0]}
    if len(runs) > 1:
        row["peer_to_itself"] = differences(runs[1], runs[0])
        row["peer_losses_again"] = runs[1]
        print(f"torchvision to itself: {row['peer_to_itself']}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps([row], indent=1))
    if any(value > bound for value, bound in zip(first, FIRST_BOUNDS)) or means > WINDOW_BOUND or sum(here[-5:]) >= sum(here[:5]):
        sys.exit(f"the curves part: {in_short(FIRST_BOUNDS)} of steps 1 to {FIRST} (medians of the starts) and {WINDOW_BOUND} of means of "
                 f"{WINDOW} are allowed, and a loss that falls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
