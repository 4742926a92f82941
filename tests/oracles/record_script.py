#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: forecast
"""Scripts as people write them under `python -m lockstep.record`: plain PyTorch, timm, Hugging Face's loop and Trainer.

The plain one is recorded a second time by lockstep.record(build): the forecast of both must be the same byte for byte and in
every digit of its seconds. Of the others the parameters are those of the model itself, and the plan takes the recording.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
from lockstep import recorder  # noqa: E402
from lockstep.record import record_script  # noqa: E402

LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep"
PLAIN = """
import torch, torchvision
model = torchvision.models.resnet18(num_classes=10).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    images, labels = torch.randn(32, 3, 64, 64, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
"""
AMP = """
import argparse, torch, torchvision
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int)
batch = parser.parse_args().batch
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torchvision.models.resnet18(num_classes=10).to(device)
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(64, 3, 64, 64), torch.randint(0, 10, (64,)))
loader = torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True)
scaler = torch.amp.GradScaler()
for epoch in range(10):
    for number, (images, labels) in enumerate(loader):
        with torch.autocast(device, torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images.to(device, non_blocking=True)), labels.to(device))
        scaler.scale(loss).backward()
        if number % 2 == 1:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""
TIMM = """
import timm, timm.loss, timm.optim, torch
model = timm.create_model("vit_tiny_patch16_224", num_classes=37).to("cuda")
optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
criterion = timm.loss.LabelSmoothingCrossEntropy(0.1)
data = torch.utils.data.TensorDataset(torch.randn(24, 3, 224, 224), torch.randint(0, 37, (24,)))
for images, labels in torch.utils.data.DataLoader(data, 8, shuffle=True):
    with torch.autocast("cuda", torch.bfloat16):
        loss = criterion(model(images.to("cuda")), labels.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""
HF = """
import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification
config = ViTConfig(hidden_size=192, num_attention_heads=3, num_hidden_layers=4, intermediate_size=768, num_labels=37)
model = ViTForImageClassification(config)
data = [{"pixel_values": torch.randn(3, 224, 224), "labels": i % 37} for i in range(32)]
"""
HF_LOOP = HF + """
model = model.to("cuda").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for batch in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
    model(**{name: value.to("cuda") for name, value in batch.items()}).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
HF_TRAINER = HF + """
arguments = TrainingArguments("out", per_device_train_batch_size=8, max_steps=10, report_to=[])
Trainer(model=model, args=arguments, train_dataset=data).train()
"""
TWO = PLAIN.replace("    optimizer.step()", "    optimizer.step()\n    torch.optim.SGD(model.parameters(), lr=0.1).step()")
# name -> script, words behind --, what its recording says
SCRIPTS = {"plain": (PLAIN, [], {"micro_batch": 32, "image_size": 64, "optimizer": "sgd", "accumulation": 1, "parameters": 11181642}),
           "amp": (AMP, ["--batch", "16"], {"micro_batch": 16, "optimizer": "adamw", "accumulation": 2, "parameters": 11181642}),
           "timm_loop": (TIMM, [], {"micro_batch": 8, "image_size": 224, "optimizer": "adamw", "parameters": 5531557}),
           "hf_loop": (HF_LOOP, [], {"micro_batch": 8, "image_size": 224, "optimizer": "adamw"}),
           "hf_trainer": (HF_TRAINER, [], {"micro_batch": 8, "optimizer": "adamw"})}
REFUSED = {"two": (TWO, "several optimizers"), "short": (PLAIN.replace("range(5)", "range(2)"), "ended after 2 steps"),
           "cpu": (PLAIN.replace('.to("cuda")', "").replace(', device="cuda"', ""), "move its model there")}


def build_plain():
    """The plain script's step by hand, for lockstep.record(build)."""
    made, _, step = PLAIN.partition("for _ in range(5):")
    names = {}
    exec(made, names)
    code = compile("if True:" + step, "step", "exec")
    return lambda: exec(code, names)


def header(path):
    with open(path) as file:
        return json.loads(file.readline())


def forecast(path):
    words = [LOCKSTEP, "plan", "--recording", path, "--on", "h200,v100-32", "--steps", "100", "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(o["memory"]["total_bytes"], o["memory"]["by_class"], o["step_seconds"]) for o in json.loads(done.stdout)["options"]]


def check_command():
    """As a person types it."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    for words, expected in ((["plain.py", "--to", "typed.rec"], "typed.rec: 3 steps of plain, 11.2M parameters, batch 32, sgd\nlockstep plan"),
                            (["nowhere.py"], "nowhere.py")):
        done = subprocess.run([sys.executable, "-m", "lockstep.record", *words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert expected in done.stdout and "Warning" not in done.stdout, done.stdout
    assert pathlib.Path("typed.rec").read_bytes() == pathlib.Path("plain.rec").read_bytes()


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (script, words, expected) in SCRIPTS.items():
            pathlib.Path(f"{name}.py").write_text(script)
            record_script(f"{name}.py", words, f"{name}.rec")
            found = header(f"{name}.rec")
            different = {key: found[key] for key in expected if found[key] != expected[key]}
            assert not different, f"{name}: {different}"
            print(f"{name}: {found['parameters'] / 1e6:.1f}M parameters, {forecast(f'{name}.rec')[0][0] / 1e9:.3f} GB on an H200", flush=True)
        recorder.record(build_plain, "built.rec", title="plain", optimizer="sgd", micro_batch=32, image_size=64)
        assert forecast("built.rec") == forecast("plain.rec"), "a script and its step by hand differ"
        for name, (script, words) in REFUSED.items():
            pathlib.Path(f"{name}.py").write_text(script)
            try:
                record_script(f"{name}.py", [], f"{name}.rec")
                raise SystemExit(f"{name} was not refused")
            except RuntimeError as error:
                assert words in str(error), f"{name}: {error}"
        check_command()
        os.chdir(ROOT)
    print(f"record_script: {len(SCRIPTS) + len(REFUSED) + 2} passed, 0 failed")


if __name__ == "__main__":
    main()
