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


def make_forecaster(words):
    """A ConvLSTM encoder and forecaster with peepholes as one writes it down: a cell called step by step."""
    from torch import nn
    inputs, outputs, patch, input_kernel, state_kernel, *widths = (int(word) for word in words.split(","))

    class Cell(nn.Module):
        def __init__(self, taken, width):
            super().__init__()
            self.x = nn.Conv2d(taken, 4 * width, input_kernel, padding=input_kernel // 2) if taken else None
            self.h = nn.Conv2d(width, 4 * width, state_kernel, padding=state_kernel // 2, bias=not taken)
            self.peepholes = nn.Parameter(torch.zeros(3, width))

        def forward(self, x, h, c):
            gates = self.h(h) if self.x is None else self.x(x) + self.h(h)
            i, f, g, o = gates.chunk(4, 1)
            p_i, p_f, p_o = self.peepholes.view(3, 1, -1, 1, 1)
            i, f = torch.sigmoid(i + p_i * c), torch.sigmoid(f + p_f * c)
            c = f * c + i * torch.tanh(g)
            return torch.sigmoid(o + p_o * c) * torch.tanh(c), c

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            taken = [patch * patch, *widths]
            self.encoder = nn.ModuleList([Cell(taken[i], width) for i, width in enumerate(widths)])
            back = widths[::-1]
            self.forecaster = nn.ModuleList([Cell(back[i - 1] if i else 0, width) for i, width in enumerate(back)])
            self.head = nn.Conv2d(sum(widths), patch * patch, 1)

        def forward(self, frames):
            x = [nn.functional.pixel_unshuffle(frames[:, t:t + 1], patch) for t in range(inputs)]
            states = []
            for cell, width in zip(self.encoder, widths):
                h = c = x[0].new_zeros(len(frames), width, *x[0].shape[2:])
                for t in range(inputs):
                    h, c = cell(x[t], h, c)
                    x[t] = h
                states.append((h, c))
            x, seen = [None] * outputs, [[] for _ in range(outputs)]
            for cell, (h, c) in zip(self.forecaster, reversed(states)):
                for t in range(outputs):
                    h, c = cell(x[t], h, c)
                    x[t] = h
                    seen[t].append(h)
            return torch.cat([nn.functional.pixel_shuffle(self.head(torch.cat(maps, 1)), patch) for maps in seen], 1)

    return Forecaster(), inputs, outputs


def forecast_loss(output, targets):
    """HKO-7's weights at 2, 5, 10 and 30 mm/h."""
    weight = 1 + sum(more * (targets >= at) for at, more in ((.540, 1), (.631, 3), (.700, 5), (.809, 20)))
    off = output.float() - targets
    return (weight * (off.square() + off.abs())).mean()


def make_model(name, classes, image_size):
    if name.startswith("vit_"):
        try:
            import timm
        except ImportError:
            return plain_vit(name, classes, image_size)
        return timm.create_model(name, num_classes=classes, img_size=image_size)
    import torchvision
    return torchvision.models.get_model(name, num_classes=classes)


PIXEL_CLASSES = 11  # CamVid's


def make_tiramisu(name):
    """FC-DenseNet as its paper describes it, layer by layer."""
    from torch import nn
    growth, layers = {"fcdensenet56": (12, [4] * 11), "fcdensenet67": (16, [5] * 11),
                      "fcdensenet103": (16, [4, 5, 7, 10, 12, 15, 12, 10, 7, 5, 4])}[name]

    def layer(channels, out, kernel):
        return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
                             nn.Conv2d(channels, out, kernel, padding=kernel // 2), nn.Dropout(0.2))

    class Dense(nn.Module):
        def __init__(self, channels, count, whole):
            super().__init__()
            self.layers, self.whole = nn.ModuleList(layer(channels + i * growth, growth, 3) for i in range(count)), whole

        def forward(self, x):
            new = []
            for one in self.layers:
                new.append(one(x))
                x = torch.cat([x, new[-1]], 1)
            return x if self.whole else torch.cat(new, 1)

    class Tiramisu(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, channels, skips = nn.Conv2d(3, 48, 3, padding=1), 48, []
            self.down, self.halves, self.up, self.doubles = (nn.ModuleList() for _ in range(4))
            for count in layers[:5]:
                self.down.append(Dense(channels, count, True))
                channels += growth * count
                skips.append(channels)
                self.halves.append(nn.Sequential(layer(channels, channels, 1), nn.MaxPool2d(2)))
            self.bottom, channels = Dense(channels, layers[5], False), growth * layers[5]
            for i, count in enumerate(layers[6:]):
                self.doubles.append(nn.ConvTranspose2d(channels, channels, 3, stride=2))
                self.up.append(Dense(channels + skips[4 - i], count, i == 4))
                channels = growth * count + (channels + skips[4 - i] if i == 4 else 0)
            self.last = nn.Conv2d(channels, PIXEL_CLASSES, 1)

        def forward(self, x):
            x, skips = self.first(x), []
            for dense, half in zip(self.down, self.halves):
                skips.append(dense(x))
                x = half(skips[-1])
            x = self.bottom(x)
            for double, dense in zip(self.doubles, self.up):
                skip = skips.pop()
                x = double(x)
                top, left = (x.shape[2] - skip.shape[2]) // 2, (x.shape[3] - skip.shape[3]) // 2
                x = dense(torch.cat([x[:, :, top:top + skip.shape[2], left:left + skip.shape[3]], skip], 1))
            return self.last(x)

    return Tiramisu()


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
    forecasts, segments = name.startswith("convlstm:"), name.startswith("fcdensenet")
    if forecasts:
        model, inputs, outputs = make_forecaster(name.split(":")[1])
    else:
        model = make_detector(name) if detects else make_tiramisu(name) if segments else make_model(name, 1000, height)
    model = model.to(device).train()
    rate = 1e-4 if detects or forecasts else 0.1  # a detector that diverges finds no regions, and saves their time

    def make_optimizer():  # its state lies as the weights do: made again where these change
        if optimizer_name == "adamw":
            return torch.optim.AdamW(model.parameters(), lr=min(rate, 1e-3), fused=device == "cuda")
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)

    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, height, width, device=device)
    targets = (draw_objects(batch, height, width, device) if detects else
               torch.randint(0, PIXEL_CLASSES, (batch, height, width), device=device) if segments else
               torch.randint(0, 1000, (batch,), device=device))

    if forecasts:
        images, targets = torch.rand(batch, inputs, height, width, device=device), torch.rand(batch, outputs, height, width, device=device)

    network = torch.compile(model) if compiled else model

    def loss_of(values):
        if detects:
            return sum(network(list(values), targets).values())
        output = network(values)
        if forecasts:
            return forecast_loss(output, targets)
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
