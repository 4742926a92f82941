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


def main():
    name, batch, image_size, threads, optimizer_name, precision, device = sys.argv[1:8]
    batch, image_size = int(batch), int(image_size)
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    sixteen = {"bf16": torch.bfloat16, "amp": torch.float16 if device == "cuda" else torch.bfloat16}.get(precision)
    scaler = torch.amp.GradScaler(device, enabled=precision == "amp" and device == "cuda")
    model = make_model(name, 1000, image_size).to(device).train()
    if optimizer_name == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, image_size, image_size, device=device)
    targets = torch.randint(0, 1000, (batch,), device=device)

    def steps(count, values):
        start = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, sixteen, enabled=sixteen is not None):
                loss = criterion(model(values), targets)
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
