#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the reports of a forecaster, a segmenter and a captioner, each trained here for moments, in headless Chromium: forecasts
in motion, overlays and attention maps are images that the browser has decoded and shows inside the page, on a desk and on a phone, light and dark.

tasks.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

from report import LOCKSTEP, ROOT

sys.path.insert(0, str(ROOT / "tests/planner"))
from devtools import Browser  # noqa: E402

WORST = 3
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # of an attention map, dark to bright
SMALL = {"global_batch": 8, "threads": 1, "seed": 1, "optimizer": {"name": "adamw", "lr": 0.005}}
# task: how its data is drawn, how it is prepared, its job, words of the page (of a table's head without what lies between)
TASKS = {
    "nowcast": (["radar", "--count", "72"], ["--grid", "48", "--cell", "4", "--frames", "10", "--stride", "2", "--validate", "0.4"],
                {"data": {"image_size": 48}, "model": {"name": "convlstm", "patch": 2}, "training": {**SMALL, "epochs": 8},
                 "nowcast": {"inputs": 4, "outputs": 6, "widths": [8], "thresholds": [0.5, 5], "scales": [5]}},
                ["CSI at 0.5 mm/h", "persistence", "flow"]),
    "segment": (["labels", "--count", "32", "--classes", "3", "--image-size", "64"], [],
                {"data": {"image_size": [48, 64]}, "model": {"name": "fcdensenet56", "width": 4}, "training": {**SMALL, "epochs": 3}},
                ["Mean IoU", "background", "disk", "pixels right", "classpixelsIoUfound"]),
    "caption": (["captions", "--count", "48", "--classes", "3", "--image-size", "64"], [],
                {"data": {"image_size": [64, 80], "augment": "none"}, "model": {"name": "attend_resnet18", "width": 8}, "training": {**SMALL, "epochs": 6},
                 "caption": {"length": 14, "min_count": 2, "embedding": 24, "hidden": 32, "attention": 32}},
                ["CIDEr-D", "BLEU-4"]),
}
# Of every picture of a mistake, once the browser has decoded it: its size as stored and as shown, where it ends, its frames, how
# bright each of its panels is below its word, and the share of pixels that are not those of the image below.
PICTURES = """(async wanted => {
    const pixels = (image, left, top, width, height) => {
        const canvas = new OffscreenCanvas(width, height), pen = canvas.getContext("2d");
        pen.drawImage(image, left, top, width, height, 0, 0, width, height);
        return pen.getImageData(0, 0, width, height).data;
    };
    const load = async address => { const image = new Image(); image.src = address; await image.decode(); return image; };
    const found = [];
    for (const [at, image] of document.querySelectorAll("figure img").entries()) {
        image.scrollIntoView();
        image.loading = "eager";
        await image.decode();
        const place = image.getBoundingClientRect(), {columns, rows, below} = wanted[at];
        const bytes = Uint8Array.from(atob(image.src.split(",")[1]), letter => letter.charCodeAt(0));
        const decoder = new ImageDecoder({data: bytes, type: image.src.slice(5, image.src.indexOf(";"))});
        await decoder.tracks.ready;
        const width = image.naturalWidth, height = image.naturalHeight, light = [];
        for (let panel = 0; panel < columns * rows; ++panel) {
            const data = pixels(image, panel % columns * width / columns, (Math.floor(panel / columns) + 0.2) * height / rows, width / columns, 0.8 * height / rows);
            light.push(data.reduce((sum, value) => sum + value, 0) / data.length);
        }
        let changed = null;
        if (below) {
            const ours = pixels(image, 0, 0, width, height), theirs = pixels(await load(below), 0, 0, width, height);
            changed = ours.filter((value, i) => Math.abs(value - theirs[i]) > 40).length / ours.length;
        }
        found.push({stored: [width, height], shown: [image.clientWidth, image.clientHeight], left: place.left, right: place.right,
                    frames: decoder.tracks.selectedTrack.frameCount, light, changed});
    }
    return found;
})"""


def run(folder, *words):
    done = subprocess.run([str(LOCKSTEP), *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"lockstep {' '.join(words)}: {done.stderr}"


def learn(folder, task):
    """A run of this task with its page; what its evaluation says of the worst mistakes."""
    drawn, prepared, job, _ = TASKS[task]
    run(folder, "prep", "--synthesize", *drawn, "--to", "drawn")
    run(folder, "prep", "drawn", "--to", "set", *prepared)
    job = {"name": task, "task": task, "evaluation": {"worst": WORST}, **job, "data": {"train": "set/train", "validate": "set/validate", **job["data"]}}
    (folder / "job.json").write_text(json.dumps(job))
    run(folder, "train", "job.json", "--run", "run")
    run(folder, "eval", "run")
    run(folder, "report", "run")
    return json.loads((folder / "run/eval.json").read_text())["worst"]


def wanted_of(task, mistake, folder):
    """What the pictures of this mistake are to be held against: panels side by side, the image below."""
    if task == "caption":  # the image and a panel a word, five in a row
        count = len(mistake["record"]["words"]) + 1
        return {"columns": min(count, 5), "rows": -(-count // 5)}
    below = f"data:image/jpeg;base64,{base64.b64encode((folder / 'drawn' / mistake['name']).read_bytes()).decode()}" if task == "segment" else None
    return {"columns": 1, "rows": 1, "below": below}


def painted_share(record):
    """Of an image: what the record says is no background."""
    return sum(region["share"] for region in record["regions"] if region["class"] != "background")


def brightness(word):
    """Of a word's attention map: how much of the image's light its digits leave."""
    return 0.15 + 0.85 * sum(map(DIGITS.index, word["attention"])) / (len(DIGITS) - 1) / len(word["attention"])


def check_picture(task, picture, mistake):
    """What only this task's pictures have, as far as the record has it: a net of few steps may find background alone, or no word."""
    if task == "nowcast":
        rules = TASKS[task][2]["nowcast"]
        assert picture["frames"] == rules["inputs"] + rules["outputs"], f"the forecast does not move: {picture}"
    if task == "segment":
        assert picture["stored"] == [mistake["record"]["width"], mistake["record"]["height"]], picture
        painted = painted_share(mistake["record"])
        assert painted <= 0.05 or picture["changed"] > 0.2 * painted, f"no overlay: {picture}, {painted}"
    if task == "caption":
        words = mistake["record"]["words"]
        image, *lights = picture["light"][:len(words) + 1]
        assert len(lights) == len(words), (picture, words)
        assert all(light < 0.99 * image for light, word in zip(lights, words) if brightness(word) < 0.9), f"no attention maps: {picture}"


def look(browser, folder, task, worst, width):
    text = browser.evaluate("document.body.textContent")
    for words in TASKS[task][3]:
        assert words in text, f"{task}: '{words}' is not shown"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, f"{task}: wider than {width}"
    assert not browser.evaluate("document.getElementById('problem')") and not browser.errors, (task, browser.errors)
    faint = browser.faint_texts()
    assert not faint, f"{task}: hard to read: {faint[:8]}"
    answers = browser.evaluate("[...document.querySelectorAll('figcaption')].map(each => each.innerText)")
    assert not any(line.strip() in ("is", "said") for answer in answers for line in answer.split("\n")), f"{task}: an answer without words: {answers}"
    wanted = [wanted_of(task, mistake, folder) for mistake in worst]
    found = browser.evaluate(f"{PICTURES}({json.dumps(wanted)})")
    assert len(found) == len(worst) == WORST, (task, len(found), len(worst))
    for picture, mistake in zip(found, worst):
        stored, shown = picture["stored"], picture["shown"]
        assert min(stored) > 0 and picture["left"] >= 0 and picture["right"] <= width, (task, width, picture)
        assert abs(shown[0] / shown[1] * stored[1] / stored[0] - 1) < 0.02, f"{task}: bands beside the picture: {picture}"
        assert shown[0] >= min(stored[0], 0.4 * width) or shown[0] >= 250, f"{task}: too small to be seen: {picture}"
        check_picture(task, picture, mistake)


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if sys.argv[1:2] == ["--keep"] else None
    with tempfile.TemporaryDirectory() as name, Browser() as browser:
        for task in TASKS:
            folder = pathlib.Path(name) / task
            folder.mkdir()
            worst = learn(folder, task)
            for width in (1280, 390):
                for scheme in ("dark", "light"):
                    browser.open((folder / "run/report.html").as_uri(), width=width, scheme=scheme)
                    look(browser, folder, task, worst, width)
                    if keep:
                        browser.screenshot(keep / f"{task}-{width}-{scheme}.png")
            print(f"tasks.py: {task}: {len(worst)} pictures, decoded and inside the page at 1280 and 390 pixels")


if __name__ == "__main__":
    main()
