# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own step, timed on demand: the peer of `lockstep bench step`.

Reads "go N" lines, runs N steps, answers with the seconds they took. Memory format: whichever is faster here.
"""
import sys
import time

import torch


def make_model(name, classes, image_size):
    if name.startswith("vit_"):
        import timm
        return timm.create_model(name, num_classes=classes, img_size=image_size)
    import torchvision
    return torchvision.models.get_model(name, num_classes=classes)


def make_detector(name):
    """Faster or Mask R-CNN as torchvision trains it from scratch, on images that have their size already."""
    from torchvision.models.detection import FasterRCNN, MaskRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    kind, trunk, _ = name.split("_")
    backbone = resnet_fpn_backbone(backbone_name=trunk, weights=None, norm_layer=torch.nn.BatchNorm2d, trainable_layers=5)
    return {"fasterrcnn": FasterRCNN, "maskrcnn": MaskRCNN}[kind](backbone, 91, _skip_resize=True)


def draw_objects(batch, height, width, device):
    """As many rectangles as our synthetic samples have, with their masks."""
    targets = []
    for index in range(batch):
        size = torch.tensor([width, height]) * (0.1 + 0.4 * torch.rand(1 + index % 8, 2))
        corner = torch.rand_like(size) * (torch.tensor([width, height]) - size)
        boxes = torch.cat([corner, corner + size], 1)
        masks = torch.zeros(len(boxes), height, width, dtype=torch.uint8)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.int().tolist()):
            mask[y1:y2 + 1, x1:x2 + 1] = 1
        targets.append({"boxes": boxes.to(device), "labels": torch.randint(1, 91, (len(boxes),), device=device),
                        "masks": masks.to(device)})
    return targets


def main():
    name, batch, image_size, threads, optimizer_name, precision, device = sys.argv[1:8]
    batch = int(batch)
    height, width = (int(side) for side in (image_size.split("x") * 2)[:2])
    detects = "rcnn_" in name
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    sixteen = {"bf16": torch.bfloat16, "amp": torch.float16 if device == "cuda" else torch.bfloat16}.get(precision)
    scaler = torch.amp.GradScaler(device, enabled=precision == "amp" and device == "cuda")
    model = (make_detector(name) if detects else make_model(name, 1000, height)).to(device).train()
    rate = 1e-4 if detects else 0.1  # a detector that diverges finds no regions, and saves their time
    if optimizer_name == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=min(rate, 1e-3))
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, height, width, device=device)
    targets = draw_objects(batch, height, width, device) if detects else torch.randint(0, 1000, (batch,), device=device)

    def loss_of(values):
        return sum(model(list(values), targets).values()) if detects else criterion(model(values), targets)

    def steps(count, values):
        start = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, sixteen, enabled=sixteen is not None):
                loss = loss_of(values)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            loss.item()
        return time.perf_counter() - start

    last = images.contiguous(memory_format=torch.channels_last)
    trials = {}
    for label, form, values in (("contiguous", torch.contiguous_format, images),
                                ("channels_last", torch.channels_last, last)):
        model.to(memory_format=form)
        steps(2, values)
        trials[label] = min(steps(2, values) for _ in range(2))
    best = min(trials, key=trials.get)
    form = torch.channels_last if best == "channels_last" else torch.contiguous_format
    model.to(memory_format=form)
    values = images.contiguous(memory_format=form)
    steps(2, values)
    print(f"ready {torch.__version__} {best}", flush=True)
    for line in sys.stdin:
        print(steps(int(line.split()[1]), values), flush=True)


main()
