#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The planner page in headless Chromium: 50 plans with the digits of `lockstep plan`, a recording made by lockstep.record
dropped onto it, what it refuses and in which words, its times, its size, the keyboard, a phone's width.

page.py [--keep DIR] [--plans N]: also writes screenshots for people to look at. Needs build/planner/planner.html
(make planner-page), build/bin/lockstep, Chromium and, for the recording, .deps/oracles.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from devtools import CHROMIUM, Browser

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
PAGE = BUILD / "planner" / "planner.html"
MOST_BYTES, MOST_LOAD, MOST_PLAN = 10_000_000, 2.0, 1.0
ALONE, SEVERAL = "precision,micro_batch,recompute", "precision,micro_batch"


def job_of(network, recipe, classes, batch, precision, **more):
    job = {"name": network, "data": {"train": "train", "samples": 50000}, "model": {"name": network, **({"classes": classes} if classes else {})},
           "training": {"global_batch": batch, "epochs": 3, "precision": precision}}

    def merge(into, values):
        for key, value in values.items():
            if isinstance(value, dict) and key in into:
                merge(into[key], value)
            else:
                into[key] = value
    merge(job, recipe)
    merge(job, more)
    return job


def cases(zoo):
    """(job, words): every network on every GPU, then batches, precisions, GPUs, machines, lengths and levers."""
    rows = {row["name"]: row for row in zoo["networks"]}

    def make(name, batch, precision, words, which=0, classes=0, **more):
        row = rows[name]
        return job_of(name, zoo["recipes"][row["recipes"][which]], row["classes"][classes], batch, precision, **more), words
    for index, (name, row) in enumerate(rows.items()):
        yield make(name, row["batch"], ("tf32", "bf16", "fp32", "amp")[index % 4], ["--on", "all", "--levers", ALONE])
    names = list(rows)
    for index, batch in enumerate((1, 2, 7, 31, 64, 100, 333, 512, 1000, 2048)):
        yield make(names[index % len(names)], batch, ("fp32", "bf16", "amp")[index % 3], ["--on", "all", "--no-search"])
    for index, gpus in enumerate(("2", "3", "4", "8", "1,2,4,8", "16")):
        yield make(names[(5 * index) % len(names)], 240, ("bf16", "fp32")[index % 2],
                   ["--on", "v100-16,a100-80,h200", "--gpus", gpus, "--levers", SEVERAL])
    for index, machine in enumerate(("minotauro", "piz-daint", "delta", "colab", "ryzen-9-5900x")):
        yield make(names[(3 * index + 1) % len(names)], 64, "fp32", ["--on", machine, "--levers", SEVERAL])
    evaluated = {"data": {"validate": "validate"}}
    for index, (samples, gpus) in enumerate((("5000", "1"), ("5", "1"), ("5000", "2"), ("37", "4"))):
        yield make(names[(2 * index) % len(names)], 96, "bf16",
                   ["--on", "rtx3090,l40s,b200", "--gpus", gpus, "--validation-samples", samples, "--levers", SEVERAL],
                   **evaluated)
    for words in (["--on", "t4,p100", "--set", "training.micro_batch=16", "--samples", "1000000", "--no-search"],
                  ["--on", "a100-40", "--set", "training.seed=9", "--set", "limits.walltime=12:00:00", "--no-search"],
                  ["--on", "8GB,24GB", "--levers", ALONE], ["--on", "h100", "--assume", "pue=1.5", "--assume", "kwh=0.3"],
                  ["--on", "h200", "--set", "data.samples=400", "--levers", "micro_batch"]):  # 9 full batches: too few for a CUDA graph
        if "--assume" in words:
            words = words + ["--levers", ALONE]
        yield make(names[len(words) % len(names)], 128, "bf16", words)
    # Batches of which a GPU of the catalogue holds all but some blocks: those alone are recomputed.
    for name, batch, precision in (("vit_giant_patch14_224", 15, "bf16"), ("vit_huge_patch14_224", 15, "amp"),
                                   ("vit_large_patch16_224", 24, "bf16"), ("vit_base_patch16_224", 64, "fp32"),
                                   ("vit_small_patch16_224", 15, "amp"), ("convnext_tiny", 15, "fp32")):
        yield make(name, batch, precision, ["--on", "all", "--levers", ALONE], which=-1, classes=-1)


def digits(text):
    """The document with every number as it was written; what tells of this very run is left out."""
    document = json.loads(text, parse_float=str, parse_int=str)
    for key in ("timing", "commit"):
        document.pop(key, None)
    return document


def differences(ours, theirs, where=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key), theirs.get(key), f"{where}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{where}[{index}]")
    elif ours != theirs:
        yield f"{where}: page {str(ours)[:200]}, program {str(theirs)[:200]}"


def plan_in_page(browser, words, files, network):
    """The page's raw answer: its text, before any browser reads the numbers."""
    return browser.evaluate(f"""(async () => {{
        for (const [name, text] of Object.entries({json.dumps(files)})) putFile(name, text);
        await takeNetwork({json.dumps(network)});
        const pointer = newText({json.dumps(json.dumps(words))});
        const begin = performance.now();
        const said = planner.UTF8ToString(planner._planner_plan(pointer));
        const took = performance.now() - begin;
        planner._free(pointer);
        return [said, took];
    }})()""")


# glibc has its exp, log and pow twice, and takes those with fused multiply-add where the processor has it: their last bit
# differs in one of some thousand numbers. WebAssembly has no such instruction; the plain ones are the same code there.
PLAIN_MATHEMATICS = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-AVX2,-AVX512F"}


def plan_of_program(folder, words):
    done = subprocess.run([BUILD / "bin/lockstep", "plan", *words, "--json", "-"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, **PLAIN_MATHEMATICS})
    return done.stdout, done.stderr


def compare(browser, folder, job, words):
    text = json.dumps(job, indent=2)
    (folder / "job.json").write_text(text)
    said, took = plan_in_page(browser, ["job.json", *words], {"job.json": text}, job["model"]["name"])
    printed, complaint = plan_of_program(folder, ["job.json", *words])
    assert printed, (job["model"]["name"], words, f"no plan to compare: {complaint}")
    answer = json.loads(said, parse_float=str, parse_int=str)
    assert "plan" in answer, (job["model"]["name"], words, said[:600])
    answer["plan"].pop("timing")
    answer["plan"].pop("commit")
    wrong = list(differences(answer["plan"], digits(printed)))
    assert not wrong, (job["model"]["name"], job["training"], words, len(wrong), wrong[:6])
    return answer["plan"]["options"], took


def check_plans(browser, folder, most):
    zoo = json.loads(browser.evaluate("document.getElementById('zoo').textContent"))
    wanted = re.findall(r'"name": "(\w+)", "title"', (ROOT / "planner/zoo.json").read_text())
    assert [row["name"] for row in zoo["networks"]] == wanted, (zoo["networks"], wanted)
    times = []  # seconds, network, whether on every GPU
    options = []
    for job, words in list(cases(zoo))[:most]:
        found, took = compare(browser, folder, job, words)
        times.append((took / 1000, job["model"]["name"], "all" in words))
        options += found
    done, slowest = len(times), max(one for one in times if one[2])
    assert done == most, f"{done} plans, {most} are promised"
    partly = sum(row["levers"]["recompute"] not in ([], ["all"]) for row in options)
    assert partly > 0 or most < 50, "no option recomputes a part of the blocks"
    short = sum("too short for a CUDA graph" in reason for row in options for reason in row["why"])
    assert short > 0 or most < 50, "no run is too short for a CUDA graph"
    print(f"page.py: {done} plans, {len(options)} options, {partly} with some blocks recomputed: every digit is the program's")
    return {"plans": done, "slowest": slowest}


def check_shown(browser, keep):
    start = time.monotonic()
    browser.open(PAGE.as_uri())
    total = time.monotonic() - start
    loaded, planned = (float(browser.evaluate(f"document.documentElement.dataset.{name}")) / 1000 for name in ("loaded", "planned"))
    options = browser.evaluate("document.querySelectorAll('#page .option').length")
    gpus = browser.evaluate("catalogue.gpus.length")
    assert options >= gpus >= 39, (options, gpus)
    assert not browser.errors, browser.errors
    # Twice, and the better: a machine that does other work besides must not decide.
    browser.drawn_again(lambda: browser.evaluate("show()"))
    again = float(browser.evaluate("document.documentElement.dataset.planned")) / 1000
    network, size = browser.evaluate("byId('network').value"), PAGE.stat().st_size
    print(f"page.py: {size / 1e6:.2f} MB, shown with a plan after {total:.2f} s (loaded {loaded:.2f} s), "
          f"{gpus} GPUs planned in {planned:.2f} s, then {again:.2f} s")
    assert size <= MOST_BYTES, size
    source = PAGE.read_text()
    assert "http://" not in source.replace("http://www.w3.org/2000/svg", "") and "https://" not in source
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            browser.open(PAGE.as_uri(), width=width, height=900, scheme=scheme)
            wide = browser.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (width, wide)
            faint = browser.faint_texts()
            assert not faint, (width, scheme, faint[:8])
            if keep:
                browser.screenshot(keep / f"planner-{width}-{scheme}.png")
    return {"loaded": loaded, "planned": min(planned, again), "size": size, "network": network}


def check_keyboard(browser):
    browser.open(PAGE.as_uri())
    seen = []
    for _ in range(14):
        browser.press("Tab")
        seen.append(browser.evaluate("document.activeElement.id || document.activeElement.tagName"))
    for wanted in ("network", "batch", "precision", "recipe", "on", "gpus", "samples", "epochs", "plan", "open"):
        assert wanted in seen, (wanted, seen)
    browser.evaluate("byId('network').focus()")
    before = browser.evaluate("byId('network').value")
    browser.drawn_again(lambda: browser.press("ArrowDown"))
    after = browser.evaluate("byId('network').value")
    assert before != after and browser.evaluate("document.querySelector('#page h1').textContent") == after, (before, after)
    print(f"page.py: every field by the keyboard; {before} -> {after} planned")


def trouble(browser):
    assert browser.evaluate("document.documentElement.dataset.drawn") == "trouble"
    return browser.evaluate("byId('trouble').textContent")


def check_refusals(browser, folder):
    """Wrong input: the program's own words, and the fix."""
    browser.open(PAGE.as_uri())
    wrong = folder / "wrong.json"
    wrong.write_text('{"name": "x", "data": {"train": "synthetic", "samples": 9}, "model": {"name": "resnet50", "classes": 5},\n'
                     ' "training": {"globl_batch": 4, "epochs": 1}}\n')
    browser.drawn_again(lambda: browser.give_files("#file", wrong))
    said = trouble(browser)
    _, complaint = plan_of_program(folder, ["wrong.json", "--on", "all"])
    assert "globl_batch" in said and "did you mean" in said, said
    for line in said.replace("fix: ", "\n").splitlines():
        assert line.strip() in complaint.replace("\n  ", " ") or line.strip() in complaint, (line, complaint)
    unrecorded = folder / "unrecorded.json"
    unrecorded.write_text('{"name": "x", "data": {"train": "synthetic", "samples": 9}, "model": {"name": "resnet34", "classes": 5},'
                          ' "training": {"global_batch": 4, "epochs": 1}}')
    browser.drawn_again(lambda: browser.give_files("#file", unrecorded))
    said = trouble(browser)
    assert "no recording of 'resnet34' is in this page" in said and "lockstep.record" in said, said
    old = folder / "old.rec"
    old.write_text('{"format":"lockstep recording","version":2,"kind":"step"}\n')
    browser.drawn_again(lambda: browser.give_files("#file", old))
    said = trouble(browser)
    assert "version 2 of the recording format; this program reads 1" in said and "record again" in said, said
    check_nonsense(browser, folder)
    for lacking in ("WebAssembly", "DecompressionStream"):
        browser.open(PAGE.as_uri(), before=f"delete window.{lacking};")
        said = trouble(browser)
        assert f"no {lacking}" in said and "Open the page in a current" in said, said
    print("page.py: unknown key, unrecorded network, recording of another version, files that are none of it, no WebAssembly: named "
          "with the fix")


def check_nonsense(browser, folder):
    """Files of another kind, and a recording that was cut off: named, and the page plans on."""
    known = next((ROOT / "results/recordings").glob("*.rec"), None)
    cut = known.read_bytes()[:4000] if known else b'{"format":"lockstep recording","version":1,"kind":"step"}\n{"op'
    for name, content in (("holiday.png", bytes(range(256)) * 40), ("empty.json", b""), ("deep.json", b"[" * 100000), ("cut.rec", cut),
                          ("machine.json", b'{"name": "box", "gpu": "a100-80", "gpus_per_nod": 2}')):
        (folder / name).write_bytes(content)
        browser.drawn_again(lambda: browser.give_files("#file", folder / name))
        said = trouble(browser)
        assert said and "RuntimeError" not in said and "undefined" not in said and "memory access" not in said, (name, said)
        browser.open(PAGE.as_uri())
        assert browser.evaluate("document.documentElement.dataset.drawn") == "yes", name


def check_recording(browser, folder, keep):
    """A step of somebody's own network, recorded by lockstep.record, dropped onto the page."""
    python = ROOT / ".deps/oracles/bin/python"
    if not python.exists():
        sys.exit("page.py: no PyTorch to record a step with: scripts/deps.sh zoo")
    script = """
import torch, lockstep
def build():
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                  torch.nn.Flatten(), torch.nn.Linear(32, 10)).cuda()
    optimizer = torch.optim.AdamW(network.parameters())
    images, labels = torch.randn(64, 3, 96, 96).cuda(), torch.zeros(64, dtype=torch.long).cuda()
    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
    return step
lockstep.record(build, "mine.rec")
"""
    done = subprocess.run([python, "-c", script], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    browser.open(PAGE.as_uri())
    browser.drawn_again(lambda: browser.drop(folder / "mine.rec"))
    assert browser.evaluate("document.documentElement.dataset.drawn") == "yes", trouble(browser)
    words = browser.evaluate("wordsFor('')")
    said, _ = plan_in_page(browser, words, {}, "")
    printed, complaint = plan_of_program(folder, words)
    answer = json.loads(said, parse_float=str, parse_int=str)["plan"]
    answer.pop("timing"), answer.pop("commit")
    wrong = list(differences(answer, digits(printed)))
    assert not wrong, (complaint, wrong[:5])
    if keep:
        browser.screenshot(keep / "planner-recording.png")
    print(f"page.py: a recording of one's own: {len(answer['options'])} options with the program's digits")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--plans", type=int, default=50)
    options = parser.parse_args()
    if not CHROMIUM:
        print("page.py: SKIPPED: no chromium (Debian: chromium)")
        sys.exit(77)
    if not PAGE.exists():
        sys.exit("page.py: there is no build/planner/planner.html: make planner-page")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, Browser() as browser:
        folder = pathlib.Path(temporary)
        figures = check_shown(browser, options.keep)
        check_keyboard(browser)
        check_refusals(browser, folder)
        check_recording(browser, folder, options.keep)
        browser.open(PAGE.as_uri())
        figures.update(check_plans(browser, folder, options.plans))
        seconds, network, _ = figures["slowest"]
        over = [name for name, took, limit in (("loaded", figures["loaded"], MOST_LOAD), ("planned", figures["planned"], MOST_PLAN),
                                               ("slowest", seconds, MOST_PLAN)) if took > limit]
        # The last line is the row's in results/test_all.json.
        print(f"page.py: {figures['size'] / 1e6:.2f} MB, loaded in {figures['loaded']:.2f} s, {figures['plans']} plans with the program's digits; "
              f"planned in {figures['planned']:.2f} s ({figures['network']}, every GPU), slowest {seconds:.2f} s ({network})"
              + (f"; slower than promised: {', '.join(over)}" if over else ""))


if __name__ == "__main__":
    main()
