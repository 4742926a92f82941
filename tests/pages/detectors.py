#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of detectors in headless Chromium, of networks that learnt: a small Mask R-CNN and a small FastBox are trained on
drawn scenes, evaluated, reported, and predict a collection with pictures. Every image of the pages loads, every box that was
told is drawn, and the pictures have their colours where the records say that masks and boxes are, and nowhere else.

detectors.py [--keep DIR]: also writes screenshots for people to look at.
"""
import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from report import LOCKSTEP, Dom, chromium

LIKELY = 0.5  # score from which on a picture shows an object
MASK_SHARE = 0.45  # of the class's colour, in the pixels of a mask
COLORS = [(230, 25, 75), (60, 180, 75), (255, 225, 25)]  # of the first classes
SCENES = {
    "name": "scenes", "task": "instances",
    "data": {"train": "set/train", "validate": "set/validate", "image_size": [96, 128], "augment": "none"},
    "model": {"name": "maskrcnn_resnet18_fpn", "width": 16},
    "instances": {"slots": 4, "min_size": 96, "max_size": 128, "mask_size": 64, "proposals": 64, "evaluated_proposals": 64,
                  "anchor_samples": 64, "roi_slots": 16, "detections": 10},
    "training": {"global_batch": 8, "steps": 100, "seed": 3, "clip_norm": 5, "threads": 1,
                 "optimizer": {"name": "adamw", "lr": 0.002}, "schedule": {"name": "cosine", "warmup_epochs": 1}},
    "evaluation": {"every_epochs": 0},
}
CARS = {
    "name": "cars", "task": "detect", "data": {"train": "set/train", "validate": "set/validate", "image_size": [96, 320], "augment": "none"},
    "model": {"name": "fastbox_resnet18", "width": 16},
    "training": {"global_batch": 8, "steps": 100, "seed": 3, "threads": 1, "optimizer": {"name": "adamw", "lr": 0.002},
                 "schedule": {"name": "constant"}},
    "evaluation": {"every_epochs": 0},
}
PIXELS = """<script>
addEventListener("load", () => {
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d", {willReadFrequently: true});
  for (const image of [...document.images]) {
    canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
    pen.drawImage(image, 0, 0);
    const all = pen.getImageData(0, 0, canvas.width, canvas.height).data, words = document.createElement("pre");
    let text = ` ${canvas.width} `;
    for (let i = 0; i < all.length; i += 4) for (let k = 0; k < 3; k++) text += all[i + k].toString(16).padStart(2, "0");
    words.textContent = text;
    image.replaceWith(words);
  }
  document.documentElement.dataset.drawn = "yes";
});
</script>"""


def lockstep(folder, *words):
    done = subprocess.run([LOCKSTEP, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout}"


class Picture:
    """The pixels of an image, as Chromium decodes it."""

    def __init__(self, width, pixels):
        self.width, self.bytes = width, pixels
        self.height = len(self.bytes) // (3 * self.width)

    def at(self, x, y):
        first = 3 * (y * self.width + x)
        return self.bytes[first:first + 3]


def pictures(folder, paths):
    page = folder / "pixels.html"
    page.write_text('<!doctype html><meta charset="utf-8">' + PIXELS + "".join(
        f'<img src="data:image/{"png" if path.suffix == ".png" else "jpeg"};base64,{base64.b64encode(path.read_bytes()).decode()}">' for path in paths))
    dom = Dom(chromium("--dump-dom", page.as_uri()))
    assert dom.drawn and dom.tags.get("pre", 0) == len(paths), "images that could not be decoded"
    words = "".join(dom.text).split()
    return [Picture(int(width), bytes.fromhex(text)) for width, text in zip(words[::2], words[1::2])]


def inside(segmentation):
    """The pixels of a mask, from COCO's compressed runs: column after column."""
    height, width = segmentation["size"]
    runs, at, text = [], 0, segmentation["counts"]
    while at < len(text):
        value = shift = 0
        while True:
            letter = ord(text[at]) - 48
            at += 1
            value |= (letter & 31) << shift
            shift += 5
            if not letter & 32:
                break
        if letter & 16:
            value |= -1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    found, position = set(), 0
    for number, length in enumerate(runs):
        if number % 2:
            found |= {(i // height, i % height) for i in range(position, position + length)}
        position += length
    assert position == width * height
    return found


def in_box(at, box, margin):
    """Within the box made larger by `margin` on every side; smaller where it is negative."""
    x, y, width, height = box
    return x - margin <= at[0] < x + width + margin and y - margin <= at[1] < y + height + margin


def frame(box):
    x, y, width, height = box
    left, top, right, bottom = round(x), round(y), round(x + width) - 1, round(y + height) - 1
    return ({(at, edge) for at in range(left, right + 1) for edge in (top, bottom)} |
            {(edge, at) for at in range(top, bottom + 1) for edge in (left, right)})


def distance(a, b):
    return sum(abs(p - q) for p, q in zip(a, b)) / 3


def light(color):
    return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]


def median(values):
    return sorted(values)[len(values) // 2]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def in_words(at, box):
    """Where the words of an object may stand: above its box, or within where there is no room; they may be longer than it."""
    top = round(box[1])
    return max(0, top - 14) - 2 <= at[1] < max(top, 13) + 2


def check_picture(record, plain, drawn):
    """Returns how many masks, and how many frames, had pixels of their own to compare."""
    likely = [each for each in record["objects"] if each["score"] >= LIKELY]
    boxes = [each["box"] for each in likely]
    masks = [inside(each["segmentation"]) if "segmentation" in each else set() for each in likely]
    drawn_over = lambda at: any(in_words(at, box) or in_box(at, box, 3) and not in_box(at, box, -4) for box in boxes)
    num_masks = num_frames = 0
    for number, each in enumerate(likely):
        color = COLORS[each["label"]]
        own = [at for at in masks[number] if at[0] % 2 == at[1] % 2 == 0 and not any(at in mask for k, mask in enumerate(masks) if k != number)]
        # A JPEG blurs the border of a mask.
        core = [(x, y) for x, y in own if all((x + dx, y + dy) in masks[number] for dx in (-2, 2) for dy in (-2, 2)) and not drawn_over((x, y))]
        if len(core) >= 10 and mean(MASK_SHARE * distance(plain.at(*at), color) for at in core) > 25:  # it is to be seen
            mixed = mean(distance(drawn.at(*at), [(1 - MASK_SHARE) * p + MASK_SHARE * q for p, q in zip(plain.at(*at), color)]) for at in core)
            changed = mean(distance(drawn.at(*at), plain.at(*at)) for at in core)
            assert mixed < 12 and changed > mixed + 10, (record["path"], each["class"], "mask", mixed, changed)
            num_masks += 1
        edge = [at for at in frame(each["box"]) if 0 <= at[0] < plain.width and 0 <= at[1] < plain.height and
                not any(in_words(at, box) or k != number and in_box(at, box, 1) for k, box in enumerate(boxes))]
        if len(edge) >= 20:
            # A JPEG keeps the light of a line one pixel wide, and mixes its hue with that of its neighbours.
            off, hue = (median([measure(drawn.at(*at), color) for at in edge]) for measure in (lambda a, b: abs(light(a) - light(b)), distance))
            before = median([distance(plain.at(*at), color) for at in edge])
            assert off < 25 and hue < max(before, 40), (record["path"], each["class"], "frame", off, hue, before)
            num_frames += 1
    rest = [(x, y) for x in range(0, plain.width, 2) for y in range(0, plain.height, 2)
            if not any(in_words((x, y), box) or in_box((x, y), box, 8) for box in boxes)]
    away = mean(distance(drawn.at(*at), plain.at(*at)) for at in rest)
    assert away < 12, (record["path"], "beside", away)
    return num_masks, num_frames


def check_collection(folder, name, images, keep):
    lockstep(folder, "predict", "run", images, "--to", "found.jsonl", "--pictures")
    records = [json.loads(line) for line in (folder / "found.jsonl").read_text().splitlines()]
    drawn = [folder / "found.files/pictures" / (record["path"].removeprefix(images + "/") + ".jpg") for record in records]
    thumbnails = [folder / "found.files/thumbnails" / record["sha256"][:2] / f"{record['sha256'][2:16]}.jpg" for record in records]
    pixels = iter(pictures(folder, [folder / record["path"] for record in records] + drawn + thumbnails))
    plain, over, small = ([next(pixels) for _ in records] for _ in range(3))
    masks, frames = map(sum, zip(*map(check_picture, records, plain, over)))
    for record, image, thumbnail in zip(records, plain, small):
        assert abs(thumbnail.width / thumbnail.height / (image.width / image.height) - 1) < 0.05, (record["path"], "thumbnail")
    likely = sum(round(each["score"], 3) >= LIKELY for record in records for each in record["objects"])
    assert frames >= len(records) / 2, f"{frames} frames to compare in {len(records)} images"
    assert name == "detect" or masks >= len(records) / 2, f"{masks} masks to compare in {len(records)} images"
    page = (folder / "found.html").as_uri() + f"#least={LIKELY}"
    dom = Dom(chromium("--dump-dom", "--window-size=1280,3000", page))
    assert dom.drawn and "problem" not in dom.ids, "the page's script failed"
    assert dom.tags.get("img", 0) == dom.classes.get("cell", 0) > 0 and not dom.classes.get("missing"), (dom.tags, dom.classes)
    assert dom.tags.get("rect", 0) == likely, (dom.tags, likely)
    if keep:
        chromium("--window-size=1280,900", f"--screenshot={keep / f'{name}-collection.png'}", page)
    print(f"detectors.py: {name}: {len(records)} images, {likely} boxes on the page, {masks} masks and {frames} frames in their colours")


def check_report(folder, name, wanted, keep):
    lockstep(folder, "eval", "run")
    lockstep(folder, "report", "run")
    page = folder / "run/report.html"
    source = chromium("--dump-dom", "--window-size=1280,4000", page.as_uri())
    dom = Dom(source)
    assert dom.drawn and "problem" not in dom.ids, "the page's script failed"
    for words in wanted:
        assert dom.shows(words), words
    tones = re.findall(r'--tone: ?var\(--(\w+)\)[^>]*></i>(?:at IoU 0.5|easy|hard|validation) <b>', source)
    assert len(tones) == len(set(tones)) > 1, f"curves of one colour: {tones}"
    worst = [each for each in json.loads((folder / "run/eval.json").read_text())["worst"] if "picture" in each]
    assert dom.tags.get("img", 0) == len(worst) > 0, (dom.tags, len(worst))
    white = 0
    for each, picture in zip(worst, pictures(folder, [folder / "run" / each["picture"] for each in worst])):
        across = picture.width / each["record"]["width"]
        for truth in each["record"]["truths"]:
            x, y, width, height = (value * across for value in truth["box"])
            edge = [at for at in frame((x, y, width, height)) if 0 <= at[0] < picture.width and 0 <= at[1] < picture.height]
            white += sum(min(picture.at(*at)) > 200 for at in edge) > len(edge) / 3
    assert white >= len(worst) / 2, f"{white} white frames in {len(worst)} pictures"
    if keep:
        chromium("--window-size=1280,2600", f"--screenshot={keep / f'{name}-report.png'}", page.as_uri())
    print(f"detectors.py: {name}: the report with {len(worst)} pictures of what it gets wrong, {white} true boxes in white")


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 and sys.argv[1] == "--keep" else None
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    for name, job, prep, source, images, wanted in (
            ("instances", SCENES, ["coco", "--count", "60", "--classes", "2", "--image-size", "192"], "scenes", "scenes/val", ["Average precision of masks", "Worst mistakes"]),
            ("detect", CARS, ["kitti", "--count", "60", "--classes", "3", "--image-size", "96"], "scenes/training", "few", ["Average precision, moderate", "The run in one row"])):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            lockstep(folder, "prep", "--synthesize", *prep, "--to", "scenes")
            lockstep(folder, "prep", source, "--to", "set", *([] if name == "instances" else ["--validate", "0.2"]))
            if images == "few":
                (folder / "few").mkdir()
                for image in sorted((folder / "scenes/training/image_2").iterdir())[:12]:
                    image.rename(folder / "few" / image.name)
            (folder / "job.json").write_text(json.dumps(job))
            lockstep(folder, "train", "job.json", "--run", "run")
            check_collection(folder, name, images, keep)
            check_report(folder, name, wanted, keep)


if __name__ == "__main__":
    main()
