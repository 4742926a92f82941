# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own step, timed on demand: the peer of `lockstep bench step`.

Reads "go N" lines, runs N steps, answers with the seconds they took; "memory": with the GPU's peaks since the first
step, bytes allocated and reserved. Memory format: whichever is faster here. With "compiled" as the last argument the
network is torch.compile's, channels last.
"""
import sys
import time

import torch


def plain_vit(name, classes, image_size):
    """timm's ViT, where timm is not installed: the same layers, attention by scaled_dot_product_attention."""
    from torch import nn
    size, patch = name.split("_")[1], int(name.split("_")[2][5:])
    width, depth, heads, hidden = {"tiny": (192, 12, 3, 768), "small": (384, 12, 6, 1536), "base": (768, 12, 12, 3072),
                                   "large": (1024, 24, 16, 4096), "huge": (1280, 32, 16, 5120),
                                   "giant": (1408, 40, 16, 6144)}[size]

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

        def forward(self, x):
            rows, tokens, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(rows, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(rows, tokens, width)
            x = x + self.proj(mixed)
            return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x))))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Conv2d(3, width, patch, patch)
            self.cls = nn.Parameter(torch.zeros(1, 1, width))
            self.pos = nn.Parameter(0.02 * torch.randn(1, (image_size // patch) ** 2 + 1, width))
            self.blocks = nn.Sequential(*[Layer() for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

        def forward(self, x):
            x = self.proj(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
            return self.head(self.norm(self.blocks(x))[:, 0])

    return Vit()


def make_model(name, classes, image_size):
    if name.startswith("vit_"):
        try:
            import timm
        except ImportError:
            return plain_vit(name, classes, image_size)
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
    compiled = sys.argv[8:9] == ["compiled"]
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

    def make_optimizer():  # its state lies as the weights do: made again where these change
        if optimizer_name == "adamw":
            return torch.optim.AdamW(model.parameters(), lr=min(rate, 1e-3), fused=device == "cuda")
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)

    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, height, width, device=device)
    targets = draw_objects(batch, height, width, device) if detects else torch.randint(0, 1000, (batch,), device=device)

    network = torch.compile(model) if compiled else model

    def loss_of(values):
        if detects:
            return sum(network(list(values), targets).values())
        output = network(values)
        if not torch.is_tensor(output):  # GoogLeNet, with its auxiliary heads
            return criterion(output[0], targets) + 0.3 * sum(criterion(head, targets) for head in output[1:])
        return criterion(output, targets)

    def steps(count, values, optimizer):
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
                                ("channels_last", torch.channels_last, last))[compiled:]:
        model.to(memory_format=form)
        model.zero_grad(set_to_none=True)
        optimizer = make_optimizer()
        steps(2, values, optimizer)
        trials[label] = min(steps(2, values, optimizer) for _ in range(2))
        del optimizer
    best = min(trials, key=trials.get)
    form = torch.channels_last if best == "channels_last" else torch.contiguous_format
    model.to(memory_format=form)
    values = images.contiguous(memory_format=form)
    del images, last
    optimizer = make_optimizer()
    steps(2, values, optimizer)
    if device == "cuda":
        torch.cuda.empty_cache()  # of the trials
        torch.cuda.reset_peak_memory_stats()
    print(f"ready {torch.__version__} {best}{' compiled' if compiled else ''}", flush=True)
    for line in sys.stdin:
        if line.strip() == "memory":
            print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), flush=True)
        else:
            print(steps(int(line.split()[1]), values, optimizer), flush=True)


main()
