#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens `lockstep report` pages in headless Chromium: the charts are drawn and read by the keyboard, nothing fails, hostile text
stays text.

report.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import base64
import html.parser
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "planner"))
from devtools import CHROMIUM, Browser  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = BUILD / "bin" / "lockstep"
if not CHROMIUM:  # of every test here that opens a page: none of them passes without having looked
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: chromium is missing: scripts/deps.sh test")
# A profile of its own: one in the home folder may be held, also by a lock that a killed browser left there.
PROFILE = tempfile.TemporaryDirectory(prefix="lockstep-chromium-", ignore_cleanup_errors=True)
HOSTILE = "</script><img src=x onerror=\"document.title='pwned'\">&lt;b&gt; @[data] \u2028'\""
# An 8 x 8 grey JPEG: what a thumbnail looks like to the page.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H///"
    "/6/+b9//j/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AR//Z")


class Dom(html.parser.HTMLParser):
    """Counts tags and classes of the page as Chromium left it, and keeps its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.classes, self.ids, self.text, self.drawn = {}, {}, set(), [], False
        self.inside = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.inside.append(tag)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.ids.add(attrs.get("id"))
        self.drawn |= attrs.get("data-drawn") == "yes"
        for name in (attrs.get("class") or "").split():
            self.classes[name] = self.classes.get(name, 0) + 1

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, text):
        if not self.inside or self.inside[-1] not in ("script", "style"):
            self.text.append(text)

    def shows(self, wanted):
        return wanted in "".join(self.text)


def chromium(*arguments):
    done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           "--virtual-time-budget=3000", f"--user-data-dir={PROFILE.name}", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_shown(address, keep, name):
    """On a desk and on a phone, light and dark: nothing beside the screen, nothing faint, nothing failed; screenshots into `keep`."""
    with Browser() as browser:
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                browser.open(address, width=width, scheme=scheme, drawn="document.readyState === 'complete'")
                wide = browser.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (name, scheme, wide, width)
                faint = browser.faint_texts()
                assert not faint and not browser.errors, (name, scheme, width, faint, browser.errors)
                if keep:
                    browser.screenshot(keep / f"{name}-{width}-{scheme}.png")


def look(page, keep, name, wanted):
    """The page, which must show all that is wanted and have taken no text for markup, wherever it is looked at."""
    dom = Dom(chromium("--dump-dom", f"file://{page}"))
    assert "problem" not in dom.ids, f"{name}: the page failed"
    assert not dom.tags.get("img") and "pwned" not in dom.text, f"{name}: hostile text became markup"
    for words in wanted:
        assert dom.shows(words), f"{name}: '{words}' is not shown"
    check_shown(page.as_uri(), keep, name)
    return dom


def write_run(folder, classes, epochs=6, evaluated=True, crash=True, plan=False):
    """A run as `train` and `eval` leave it, made by hand; the curves are made up."""
    folder.mkdir(parents=True)
    rng, lines, t, step, per_epoch = random.Random(1), [], 1.76e9, 0, 55
    origin = {"name": "pets", "task": "classify", "model": "efficientnet_lite0", "parameters": 3418000,
              "classes": len(classes), "train_samples": 3312, "validate_samples": 368, "global_batch": 60,
              "total_steps": per_epoch * epochs, "steps_per_epoch": per_epoch, "ranks": 2, "threads": 1, "device": "cpu",
              "precision": "fp32", "seed": 1, "host": "node042", "version": "0.1.0", "libtorch": "2.11.0",
              "cpu": "AMD EPYC 7742 64-Core Processor", "job_sha256": "ab" * 32, "data_sha256": "cd" * 32}

    def put(event, **fields):
        lines.append({"v": 1, "t": round(t, 3), "event": event, **fields})

    put("start", **origin)
    total, done = per_epoch * epochs, False
    while step < total:
        step += 1
        share = step / total
        seconds = rng.gauss(1.05, .04) + (2.5 if step == 1 else 0)
        t += seconds
        put("step", step=step, epoch=step / per_epoch, loss=3.6 * math.exp(-4 * share) + .12 + abs(rng.gauss(0, .09)),
            accuracy=min(1, max(0, 1 - math.exp(-4.5 * share) + rng.gauss(0, .03))),
            lr=.04 * min(1, step / 50) * (.5 + .5 * math.cos(math.pi * share)), samples=60, seconds=seconds,
            data=.06 * seconds, compute=.8 * seconds, communication=.09 * seconds, save=0,
            memory=round(4.15e9 * min(1, .8 + share)), watts=round(140 + 10 * seconds, 1))
        if step % per_epoch == 0 and evaluated:
            epoch = step // per_epoch
            top1 = .93 - .6 * math.exp(-epoch)
            t += 9
            put("evaluate", step=step, epoch=epoch, split="validate", weights="raw", samples=368, top1=top1,
                loss=.28 + 1.4 * math.exp(-epoch), top5=min(1, top1 + .065), seconds=9.0)
            t += .4
            put("save", step=step, checkpoint=f"step-{step:08d}", bytes=27000000, seconds=.4, best=True)
        if crash and step == 3 * per_epoch + 20 and not done:
            done, step = True, 3 * per_epoch
            t += 400
            put("resume", **{**origin, "host": "node017"}, step=step, checkpoint=f"step-{step:08d}")
    if plan:
        def row(what, unit, promised, low, high, measured):
            return {"what": what, "unit": unit, "promised": promised, "low": low, "high": high, "measured": measured,
                    "deviation": measured / promised - 1, "inside": low <= measured <= high}
        put("promise", step=step, when="end", option=0, title="minotauro, 2 x k80",
            why=["batch_norm: 310 ms a step, promised 180 ms", "waiting for data: 6 % of the time"],
            rows=[row("step", "s", .82, .78, .9, .94), row("samples", "1/s", 73, 66, 77, 57.1),
                  row("peak memory", "B", 4.1e9, 3.9e9, 4.3e9, 4.15e9), row("total", "s", 400, 380, 440, 431)])
    if evaluated:
        put("bad_sample", path=f"train/{HOSTILE}.jpg", reason="truncated JPEG", step=7)
        put("end", step=step, seconds=t - 1.76e9, weights_sha256="9f86d081884c7d659a2feaa0c55ad015" * 2, top1=.93, loss=.28)
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"v":1,"t":17')
    (folder / "job.json").write_text(json.dumps({"name": "pets", "data": {"train": HOSTILE}, "training": {"seed": 1}}))
    if evaluated:
        (folder / "eval.json").write_text(json.dumps(evaluation(classes, rng)))
        (folder / "eval").mkdir()
        for i in range(12):
            (folder / "eval" / f"worst-{i:02d}.jpg").write_bytes(JPEG)


def evaluation(classes, rng):
    n = len(classes)
    confusion = [[0] * n for _ in range(n)]
    for c in range(n):
        for _ in range(60):
            wrong = rng.random() < .06 + (.12 if c % 7 == 3 else 0)
            confusion[c][(c + rng.choice([1, 1, 1, 2, 5])) % n if wrong else c] += 1
    rows, pairs = [], []
    for c, name in enumerate(classes):
        predicted, samples, right = sum(row[c] for row in confusion), sum(confusion[c]), confusion[c][c]
        rows.append({"name": name, "samples": samples, "precision": right / max(1, predicted), "recall": right / samples,
                     "f1": 2 * right / (predicted + samples)})
        pairs += [{"target": name, "predicted": classes[p], "count": confusion[c][p]} for p in range(n) if p != c and confusion[c][p]]
    pairs.sort(key=lambda pair: -pair["count"])
    right = sum(confusion[c][c] for c in range(n))
    worst = [{"sample": i, "path": f"validate/{classes[i % n]}/{i}.jpg", "target": classes[i % n],
              "predicted": classes[(i + 1) % n], "loss": 9 - .3 * i, "confidence": .999 - .004 * i,
              "picture": f"eval/worst-{i:02d}.jpg"} for i in range(12)]
    return {"samples": 60 * n, "loss": .29, "top1": right / (60 * n), "top5": .991, "classes": rows, "confusion": confusion,
            "most_confused": pairs[:20], "worst": worst}


def trust_figures():
    figures = {"ece": .05, "adaptive_ece": .05, "brier": .2, "nll": .3, "accuracy": .9, "confidence": .95,
               "bins": [{"low": 0, "high": .5, "rows": 0, "confidence": 0, "accuracy": 0},
                        {"low": .5, "high": 1, "rows": 60, "confidence": .95, "accuracy": .9}]}
    sets = [{"method": "lac", "coverage": .9, "found": .93, "low": .8, "high": 1, "size": 1.2, "single": .8}]
    label = {"sample": 3, "given": "cat", "suggested": HOSTILE, "score": .1, "name": "cat/x.jpg", "picture": "eval/worst-01.jpg"}
    leak = {"sample": 5, "training": "pets/train/cat/y.jpg", "bits": 4, "same_file": False, "name": "cat/z.jpg"}
    return {"rows": 60, "top1": {"value": .9, "low": .8, "high": .95}, "raw": figures, "calibrated": figures,
            "temperature": 1.25, "sets": sets, "risk_coverage": {"aurc": .02, "best_aurc": .01, "points": [[.5, 0, .9], [1, .1, .5]]},
            "labels": {"found": 7, "shown": [label]}, "by": "light", "groups": [{"value": "night", "samples": 9, "top1": .5, "low": .3, "high": .7}],
            "leakage": {"samples": 60, "exact": 0, "near": 1, "top1": .9, "top1_without": None, "shown": [leak]}}


def report(run):
    out = run / "report.html"
    subprocess.run([LOCKSTEP, "report", run], check=True, stdout=subprocess.DEVNULL)
    return out


def open_page(path, width=1280):
    dom = Dom(chromium("--dump-dom", f"--window-size={width},2000", path.as_uri()))
    assert dom.drawn and "problem" not in dom.ids, "the page's script failed"
    return dom


# Which texts of the drawings stick out of them, where they are cut off: as JSON in an element of its own.
MEASURE = """<script>addEventListener("load", () => {
  const all = [...document.querySelectorAll("svg text")], outside = [];
  for (const text of all) {
    const box = text.getBoundingClientRect(), around = text.ownerSVGElement.getBoundingClientRect();
    if (box.left < around.left - 1 || box.right > around.right + 1 || box.top < around.top - 1 || box.bottom > around.bottom + 1)
      outside.push(text.textContent);
  }
  const told = document.createElement("pre");
  told.textContent = "MEASURED" + JSON.stringify({texts: all.length, outside}) + "MEASURED";
  document.body.append(told);
});</script>"""


def check_text_fits(page, width):
    """Of the page as it is at that width of a window."""
    copy = page.with_name("measured.html")
    copy.write_text(page.read_text() + MEASURE)
    measured = json.loads("".join(open_page(copy, width).text).split("MEASURED")[1])
    assert measured["texts"] > 30, measured
    assert not measured["outside"], f"cut off in a window of {width} pixels: {measured['outside']}"


def reach_chart(browser):
    """Goes by Tab to the next chart; its name."""
    for _ in range(20):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.tagName") == "svg":
            assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", "focus is not seen"
            return browser.evaluate("document.activeElement.ariaLabel")
    raise AssertionError("no chart is reached by Tab")


def told(browser):
    """What the tip says: figures, of x first; it must lie inside the window."""
    assert browser.evaluate("""tip.hidden || (box => box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight)(
        tip.getBoundingClientRect())"""), "the tip is outside"
    return browser.evaluate("tip.hidden ? [] : [...tip.querySelectorAll('b')].map(each => each.textContent)")


def check_keyboard(page):
    """The values of a curve without a pointer: keys go through its points, Escape and Tab put the tip away."""
    with Browser() as browser:
        for width in (1280, 390):
            browser.open(page.as_uri(), width=width)
            name = reach_chart(browser)
            assert name == "Loss: arrow keys tell its values", name
            seen = []
            for key in ("End", "ArrowLeft", "ArrowRight", "Home", "ArrowLeft", "ArrowRight", "PageDown", "Escape", "End"):
                browser.press(key)
                seen.append(told(browser))
            last, before, again, first, stays, second, further, none, end = seen
            legend = browser.evaluate("[...document.activeElement.closest('.panel').querySelectorAll('.legend b')].map(each => each.textContent)")
            assert last == again == end == ["6", *legend] and len(legend) == 2, (seen, legend)
            assert first == stays and none == [], seen
            assert float(first[0]) < float(second[0]) < float(further[0]) < float(before[0]) < 6, seen
            assert reach_chart(browser) != name and told(browser) == [], "the tip stays behind"
            assert not browser.errors, browser.errors
    print("report.py: a chart's values by the keyboard")


def check_full(folder):
    classes = [f"class {i:02d}" for i in range(36)] + [HOSTILE]
    write_run(folder, classes, plan=True)
    page = report(folder)
    dom = open_page(page)
    for width in (1280, 390):
        check_text_fits(page, width)
    check_keyboard(page)
    assert dom.classes.get("curve", 0) >= 8, dom.classes  # loss 2 + 1, accuracy 2 + 2, throughput 2, rate 1
    assert dom.classes.get("cell", 0) == 37 * 37, dom.classes
    assert dom.tags.get("img", 0) == 12, dom.tags
    assert dom.classes.get("card", 0) == 7, dom.classes
    for wanted in (HOSTILE, "finished", "Promise against fact", "minotauro, 2 x k80", "Why it differs", "outside", "History of restarts", "broke off", "node017", "9f86d081884c"):
        assert dom.shows(wanted), wanted
    source = page.read_text()
    assert "http://" not in source.replace("http://www.w3.org/2000/svg", "") and "https://" not in source
    assert "onerror=\"document" not in source and "pwned" not in "".join(dom.text[:1])
    print(f"report.py: full run: {dom.classes['curve']} curves, {dom.classes['cell']} cells, {len(source) // 1024} KiB")


def check_test_part(folder):
    """Two classes, evaluated on the test images, with a small rate and mistakes under the names of their files."""
    write_run(folder, ["cat", "dog"], crash=False)
    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[:-1]]
    for line in journal:
        if "lr" in line:
            line["lr"] /= 2000
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in journal))
    result = json.loads((folder / "eval.json").read_text())
    result.update(part="test", data="pets/test", worst=result["worst"][:3])
    for mistake, confidence, name in zip(result["worst"], (.7, .99, .8), ("cat/tom 1.jpg", "dog/rex.jpg", "odd/x.jpg")):
        mistake.update(confidence=confidence, name=name, path="pets/test/test-000000.tar/00000007-x.jpg")
    result["trust"] = trust_figures()
    result["worst"][0]["heat"] = "eval/worst-00.jpg"
    (folder / "eval.json").write_text(json.dumps(result))
    page = report(folder)
    check_text_fits(page, 1280)
    dom = open_page(page)
    text = "".join(dom.text)
    assert dom.tags.get("img", 0) == 3 + 1 + 1, dom.tags  # mistakes, a heat map, a label
    for wanted in ("How far to trust it", "Reliability", "at temperature 1.250", "93.0", "Labels that may be wrong", HOSTILE,
                   "Among the training images too", "By light", "night"):
        assert dom.shows(wanted), wanted
    for wanted in ("Test loss", "120 test images", "on the test images", "tom 1.jpg", "odd/x.jpg", "2e-5"):
        assert wanted in text, wanted
    for unwanted in ("Validation loss", "top-5", "00000007", "cat/tom"):
        assert unwanted not in text, unwanted
    assert text.index("rex.jpg") < text.index("odd/x.jpg") < text.index("tom 1.jpg"), "surest first"
    print("report.py: two classes on test images: named as such, mistakes by file, surest first")


def check_labels(folder):
    """Several labels an image: no matrix, the average precision of each class."""
    write_run(folder, ["cat", "dog"], crash=False)
    result = json.loads((folder / "eval.json").read_text())
    for key in ("confusion", "most_confused"):
        del result[key]
    for row in result["classes"]:
        row["average_precision"] = .875
    (folder / "eval.json").write_text(json.dumps(result))
    dom = open_page(report(folder))
    assert dom.shows("average precision") and dom.shows("87.5") and not dom.shows("Confusion matrix")
    print("report.py: several labels an image: a table of classes, no matrix")


def check_row(folder):
    """A task whose readers know a table: the run is one row of it; a score without a loss shows none."""
    write_run(folder, ["Car", "Van"], crash=False)
    words = {"title": "Average precision, moderate", "share": True, "higher_is_better": True, "training": "",
             "validation": "moderate", "also": {"easy": "easy"}, "row": {"easy": "easy", "medium": "moderate", "hard": "hard"}}
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[:-1]]
    for line in lines:
        if line["event"] == "start":
            line["report"] = words
        if line["event"] == "evaluate":
            del line["loss"]
            line |= {"easy": .93, "moderate": .877, "hard": .736}
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "eval.json").unlink()
    dom = open_page(report(folder))
    for wanted in ("The run in one row", "medium", "0.930", "0.877", "0.736", "images/s", "ms per image"):
        assert dom.shows(wanted), wanted
    assert not dom.shows("Validation loss") and not dom.shows("not finite")
    print("report.py: a task with a row of its own: steps, hours, scores, rates in one line")


def check_partial(folder):
    write_run(folder, ["a", "b"], epochs=1, evaluated=False, crash=False)
    dom = open_page(report(folder))
    assert dom.classes.get("curve", 0) >= 3 and dom.shows("no evaluation yet") and dom.shows("broke off")
    assert not dom.classes.get("cell") and not dom.shows("Promise against fact")
    (folder / "journal.jsonl").write_text("")
    dom = open_page(report(folder))
    assert dom.shows("not started") and dom.shows("Nothing recorded yet.")
    print("report.py: a run without evaluation and one without a single step: drawn")


def screenshots(run, keep):
    keep.mkdir(parents=True, exist_ok=True)
    for width, height in ((1280, 3600), (390, 6400)):
        for scheme, flag in (("light", 1), ("dark", 0)):
            chromium(f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={flag}",
                     f"--screenshot={keep / f'report-{width}-{scheme}.png'}", (run / "report.html").as_uri())


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        check_full(folder / "full")
        check_test_part(folder / "test")
        check_labels(folder / "labels")
        check_row(folder / "row")
        check_partial(folder / "partial")
        if len(sys.argv) == 3 and sys.argv[1] == "--keep":
            write_run(folder / "pets", ["Abyssinian", "american_bulldog", "Bengal", "Birman", "boxer", "chihuahua",
                                        "Egyptian_Mau", "english_setter", "Maine_Coon", "pug"], plan=True)
            report(folder / "pets")
            screenshots(folder / "pets", pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
