# SPDX-License-Identifier: Apache-2.0
"""Training steps as other people write them: plain PyTorch, nothing of Lockstep. scripts/measure_foreign.py times them on a
GPU; foreign_steps.py DIR records them here without one, and scripts/fit_foreign.py holds the plan against that.

FITTED: their measurements may be looked at when a rule is made. JUDGED: they take no part in any fit.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn


def images(batch, size, channels_last=False):
    made = torch.randn(batch, 3, size, size, device="cuda")
    return made.contiguous(memory_format=torch.channels_last) if channels_last else made


def labels(*shape, classes=1000):
    return torch.randint(0, classes, shape, device="cuda")


def updates(net, name):
    if name == "sgd":
        return torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    return torch.optim.AdamW(net.parameters(), **({"fused": True} if name == "adamw fused" else {}))


def step_of(net, optimizer, loss, dtype=torch.bfloat16, scaler=False, accumulate=1):
    scale = torch.amp.GradScaler("cuda") if scaler else None

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(accumulate):
            with torch.autocast("cuda", dtype or torch.bfloat16, enabled=dtype is not None):
                value = loss(net) / accumulate
            (scale.scale(value) if scale else value).backward()
        if scale:
            scale.step(optimizer)
            scale.update()
        else:
            optimizer.step()
    return step


def classify(make, batch, size, optimizer="sgd", channels_last=False, output=lambda y: y, **options):
    def build():
        import torchvision
        with torch.device("cpu"):
            net = make(torchvision.models)
        net = net.to("cuda").train()
        if channels_last:
            net = net.to(memory_format=torch.channels_last)
        x, y = images(batch, size, channels_last), labels(batch)
        return step_of(net, updates(net, optimizer), lambda n: F.cross_entropy(output(n(x)), y), **options)
    return build


def segment(make, batch, size, **options):
    def build():
        import torchvision
        with torch.device("cpu"):
            net = make(torchvision.models.segmentation)
        net = net.to("cuda").train()
        x, y = images(batch, size), labels(batch, size, size, classes=21)
        return step_of(net, updates(net, "sgd"), lambda n: F.cross_entropy(n(x)["out"], y), **options)
    return build


class Gpt(nn.Module):
    """Decoder of GPT-2's shape, weights of the words shared with the head."""

    def __init__(self, layers, width, heads, tokens=1024, words=50304, recompute=False):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight, self.recompute = self.words.weight, recompute

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            if self.recompute:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.out(y)
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


def gpt(layers, width, heads, batch, tokens, optimizer="adamw", **options):
    def build():
        net = Gpt(layers, width, heads, **options).to("cuda")
        x, y = labels(batch, tokens, classes=50257), labels(batch, tokens, classes=50257)
        return step_of(net, updates(net, optimizer), lambda n: F.cross_entropy(n(x).flatten(0, 1), y.flatten()))
    return build


class Encoder(nn.Module):
    def __init__(self, words=30522, width=768):
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 12, 4 * width, activation="gelu", batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 12), nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.body(self.words(tokens)))


def encoder(batch, tokens):
    def build():
        net = Encoder().to("cuda").train()
        x, y = labels(batch, tokens, classes=30522), labels(batch, tokens, classes=30522)
        return step_of(net, updates(net, "adamw"), lambda n: F.cross_entropy(n(x).flatten(0, 1), y.flatten()))
    return build


class UNet(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        def pair(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(True),
                                 nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(True))
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(pair(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.join = nn.ModuleList(pair(2 * w, w) for w in widths[-2::-1])
        self.head = nn.Conv2d(width, 21, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
            x = join(torch.cat([skip, up(x)], 1))
        return self.head(x)


def unet(batch, size):
    def build():
        net = UNet().to("cuda")
        x, y = images(batch, size), labels(batch, size, size, classes=21)
        return step_of(net, updates(net, "adamw"), lambda n: F.cross_entropy(n(x), y))
    return build


def video(batch):
    def build():
        import torchvision
        with torch.device("cpu"):
            net = torchvision.models.video.r3d_18()
        net = net.to("cuda").train()
        x, y = torch.randn(batch, 3, 16, 112, 112, device="cuda"), labels(batch, classes=400)
        return step_of(net, updates(net, "sgd"), lambda n: F.cross_entropy(n(x), y))
    return build


FITTED = {
    "gpt-124m": (8, gpt(12, 768, 12, 8, 1024)),
    "swin_t": (64, classify(lambda m: m.swin_t(), 64, 224, "adamw")),
    "convnext_tiny": (64, classify(lambda m: m.convnext_tiny(), 64, 224, "adamw", channels_last=True)),
    "mobilenet_v3_large": (128, classify(lambda m: m.mobilenet_v3_large(), 128, 224, dtype=None)),
    "inception_v3": (64, classify(lambda m: m.inception_v3(init_weights=False), 64, 299, output=lambda y: y.logits,
                                  dtype=torch.float16, scaler=True)),
    "deeplabv3_resnet50": (8, segment(lambda m: m.deeplabv3_resnet50(weights_backbone=None), 8, 520)),
    "vgg16_bn": (64, classify(lambda m: m.vgg16_bn(), 64, 224)),
    "regnet_y_8gf": (32, classify(lambda m: m.regnet_y_8gf(), 32, 224)),
}
JUDGED = {
    "efficientnet_v2_s": (64, classify(lambda m: m.efficientnet_v2_s(), 64, 224, channels_last=True)),
    "resnext50_32x4d": (64, classify(lambda m: m.resnext50_32x4d(), 64, 224)),
    "shufflenet_v2_x1_0": (256, classify(lambda m: m.shufflenet_v2_x1_0(), 256, 224, dtype=None)),
    "vit_b_32": (128, classify(lambda m: m.vit_b_32(), 128, 224, "adamw fused")),
    "maxvit_t": (32, classify(lambda m: m.maxvit_t(), 32, 224, "adamw")),
    "swin_v2_t": (32, classify(lambda m: m.swin_v2_t(), 32, 256, "adamw fused")),
    "fcn_resnet50": (8, segment(lambda m: m.fcn_resnet50(weights_backbone=None), 8, 512)),
    "r3d_18": (16, video(16)),
    "wide_resnet50_2": (64, classify(lambda m: m.wide_resnet50_2(), 64, 224, dtype=torch.float16, scaler=True,
                                     channels_last=True)),
    "encoder-12": (32, encoder(32, 256)),
    "gpt-350m-recomputed": (4, gpt(24, 1024, 16, 4, 512, "adamw fused", recompute=True)),
    "unet": (16, unet(16, 256)),
}
STEPS = {**FITTED, **JUDGED}


def main():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
    import lockstep
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (batch, build) in STEPS.items():
        header = lockstep.record(build, folder / f"{name}.rec", title=name, micro_batch=batch, attention="cudnn")
        print(f"{name}: {header['parameters']} parameters, {header['layout']}", flush=True)


if __name__ == "__main__":
    main()
