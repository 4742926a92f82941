#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the contact sheet of `lockstep predict --to FILE.jsonl --pictures` in headless Chromium: thumbnails are found, the
filters count right, 10,000 records leave few cells in the document, hostile text stays text.

collection.py [--keep DIR]: also writes screenshots for people to look at.
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from report import HOSTILE, LOCKSTEP, Dom, chromium

ROW = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.S)


def predicted(folder):
    """The page of a small collection, as predict writes it."""
    job = {"name": "t", "data": {"train": "shapes/train", "image_size": 32}, "model": {"name": "linear"},
           "training": {"global_batch": 16, "steps": 20, "optimizer": {"lr": 0.01}}}
    (folder / "job.json").write_text(json.dumps(job))
    for words in (["prep", "--synthesize", "shapes", "--count", "100", "--classes", "4", "--to", "shapes"],
                  ["train", "job.json", "--run", "run"]):
        subprocess.run([LOCKSTEP, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "shapes/validate/a #1 %41 <b>.jpg").write_text("no image")
    subprocess.run([LOCKSTEP, "predict", "run", "shapes/validate", "--to", "found.jsonl", "--pictures"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "found.html", [json.loads(line) for line in (folder / "found.jsonl").read_text().splitlines()]


def opened(page, choice=""):
    """The page as a link with these filters opens it, and the milliseconds that opening and filtering took."""
    source = chromium("--dump-dom", "--window-size=1280,2000", page.as_uri() + (f"#{choice}" if choice else ""))
    dom = Dom(source)
    assert dom.drawn and "problem" not in dom.ids, "the page's script failed"
    return dom, [float(re.search(rf'data-{what}-ms="([0-9.]+)"', source).group(1)) for what in ("open", "filter")]


def passing(records, least, most=1, name=None):
    return sum(any(least <= round(each["probability"], 3) <= most and name in (None, each["name"])
                   for each in record.get("classes", [])) for record in records)


def check_small(folder, keep):
    page, records = predicted(folder)
    dom, _ = opened(page)
    assert dom.classes.get("cell", 0) == len(records) == 21, dom.classes
    assert dom.classes.get("missing", 0) == 0, "thumbnails"
    assert dom.shows("21 of 21 images") and dom.shows("1 not readable") and dom.shows("a #1 %41 <b>.jpg"), "".join(dom.text)
    for record in records:
        if "error" not in record:
            assert (folder / "found.files/pictures" / (record["path"].removeprefix("shapes/validate/") + ".jpg")).exists()
    name = next(record for record in records if "error" not in record)["classes"][0]["name"]
    for choice, count in (("least=0.4", passing(records, 0.4)), (f"class={name}&least=0.4", passing(records, 0.4, name=name)),
                          ("most=0.6&least=0.2", passing(records, 0.2, 0.6)), ("show=failed", 1), ("name=A%20%231", 1)):
        dom, _ = opened(page, choice)
        assert dom.shows(f"{count} of 21 images"), (choice, count, "".join(dom.text)[:400])
        assert dom.classes.get("cell", 0) == count, (choice, dom.classes)
    if keep:
        chromium("--window-size=1280,900", f"--screenshot={keep / 'collection-small.png'}", page.as_uri())
    print(f"collection.py: {len(records)} images, each with its thumbnail; filters count right")


def large(folder, page, count):
    """The same page with made-up objects in `count` images."""
    rng, classes = random.Random(1), ["person", "dog", "horse", HOSTILE] + [f"class {i}" for i in range(76)]
    data = json.loads(ROW.search(page.read_text()).group(2))
    thumbnails = [row[2] for row in data["rows"] if row[2]]
    rows = []
    for i in range(count):
        answers = sorted(((round(rng.random(), 3), min(79, int(rng.expovariate(0.4))), rng.randint(0, 300), rng.randint(0, 200),
                           rng.randint(30, 300), rng.randint(30, 250)) for _ in range(rng.randint(0, 12))), reverse=True)
        rows.append([f"museum/{HOSTILE.replace('/', '')}{i}.jpg" if i == 3 else f"museum/room {i // 100}/{i:06}.jpg", "",
                     thumbnails[i % len(thumbnails)], f"{i}.jpg.jpg", 640, 480,
                     ";".join(f"{label} {score:.3f} {x} {y} {w} {h}" for score, label, x, y, w, h in answers), "", False])
    data.update(rows=rows, images=count, failed=0, classes=classes)
    text = json.dumps(data).replace("<", "\\u003c")
    copy = folder / "large.html"
    copy.write_text(ROW.sub(lambda match: match.group(1) + text + match.group(3), page.read_text()))
    return copy, rows


def check_large(folder, keep, count=10000):
    page, rows = large(folder, folder / "found.html", count)
    dom, _ = opened(page)
    assert dom.shows(f"{count:,} of {count:,} images"), "".join(dom.text)[:300]
    assert 8 <= dom.classes.get("cell", 0) <= 120, dom.classes.get("cell")  # those that can be seen, and a few more
    wanted = sum(any(float(answer.split()[1]) >= 0.8 and answer.split()[0] == "1" for answer in row[6].split(";") if answer)
                 for row in rows)
    dom, milliseconds = opened(page, "class=dog&least=0.8&sort=surest")
    assert dom.shows(f"{wanted:,} of {count:,} images"), (wanted, "".join(dom.text)[:300])
    assert dom.classes.get("cell", 0) <= 120 and dom.tags.get("rect", 0) >= 8, dom.tags
    if keep:
        for width, height in ((1280, 1000), (390, 900)):
            for scheme, flag in (("light", 1), ("dark", 0)):
                chromium(f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={flag}",
                         f"--screenshot={keep / f'collection-{width}-{scheme}.png'}", page.as_uri() + "#least=0.5")
    print(f"collection.py: {count} images: {dom.classes['cell']} cells in the document, opened in {milliseconds[0]:.0f} ms, "
          f"filtered in {milliseconds[1]:.0f} ms")


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 and sys.argv[1] == "--keep" else None
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        check_small(folder, keep)
        check_large(folder, keep)


if __name__ == "__main__":
    main()
