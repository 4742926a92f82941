#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the page of `lockstep serve` in headless Chromium: an image and nonsense are dropped on it; at desktop and phone
width, light and dark, it has its answers side by side and nothing beside the screen; all of it by the keyboard. A page for
each kind of answer: classes, regions, a caption, objects, a forecast.

serve.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("tests/serve", "tests/pages", "tests/planner")]
from devtools import Browser  # noqa: E402
from report import Dom, chromium  # noqa: E402
from served import LOCKSTEP, Served  # noqa: E402

JOB = {"name": "shapes", "data": {"train": "set/train", "image_size": 16, "threads": 1},
       "model": {"name": "smallcnn", "width": 4}, "training": {"global_batch": 8, "epochs": 4, "threads": 1}}

SMALL = {"global_batch": 8, "epochs": 1, "threads": 1}
OTHERS = {  # task: how its data is made, its job, an image of it, words of the answer
    "segment": (["--synthesize", "labels", "--count", "16", "--classes", "2", "--image-size", "48"], [],
                {"data": {"image_size": [32, 48]}, "model": {"name": "fcdensenet56", "width": 2}},
                "JPEGImages/000004.jpg", "of it"),
    "caption": (["--synthesize", "captions", "--count", "30", "--classes", "3", "--image-size", "48"], [],
                {"data": {"image_size": [48, 64], "augment": "none"}, "model": {"name": "attend_resnet18", "width": 8},
                 "caption": {"length": 14, "min_count": 3, "embedding": 24, "hidden": 32, "attention": 32}},
                "images/000004.jpg", "a word"),
    "instances": (["--synthesize", "coco", "--count", "20", "--classes", "3", "--image-size", "48"], [],
                  {"data": {"image_size": [64, 96]}, "model": {"name": "maskrcnn_resnet18_fpn"},
                   "instances": {"slots": 4, "min_size": 64, "max_size": 96, "scale_min": 0.8, "mask_size": 32, "proposals": 32,
                                 "evaluated_proposals": 32, "anchor_samples": 32, "roi_slots": 16, "detections": 8,
                                 "score_threshold": 0},
                   "training": {"global_batch": 4, "steps": 2, "optimizer": {"lr": 0.002}, "seed": 3, "threads": 1}},
                  "val", "%"),
    "nowcast": (["--synthesize", "radar", "--count", "60"], ["--grid", "32", "--cell", "4", "--frames", "10"],
                {"data": {"image_size": 32}, "model": {"name": "convlstm", "patch": 2},
                 "nowcast": {"inputs": 4, "outputs": 6, "widths": [8], "thresholds": [0.5, 5], "scales": [5]}},
                None, "in 30 min")}

# A page beside the server cannot drop a file on it; so the server's own page is fetched here and given one more script,
# which drops what a person would.
DROP = """<script>
const bytes = Uint8Array.from(atob("%s"), c => c.charCodeAt(0));
const transfer = new DataTransfer();
transfer.items.add(new File([bytes], "dropped <b>.png", {type: "image/png"}));
document.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
</script>"""


def lockstep(*words):
    subprocess.run([LOCKSTEP, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def proxied(server, content):
    """A server of this test: the page with the drop in it, everything else passed on, with the token."""
    import http.server
    import threading
    import urllib.error
    import urllib.request

    class Handler(http.server.BaseHTTPRequestHandler):
        def pass_on(self, body=None):
            headers = {"Authorization": f"Bearer {server.token}", "Accept": self.headers.get("Accept", "*/*")}
            try:
                answer = urllib.request.urlopen(urllib.request.Request(server.url + self.path, body, headers))
            except urllib.error.HTTPError as error:
                answer = error
            data = answer.read()
            if self.path == "/":
                data = data.replace(b"</body>", (DROP % base64.b64encode(content).decode()).encode() + b"</body>")
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Security-Policy", answer.headers["Content-Security-Policy"])
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self.pass_on()

        def do_POST(self):
            self.pass_on(self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_):
            pass

    passing = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=passing.serve_forever, daemon=True).start()
    return passing


def open_page(server, content, keep=None, name=""):
    passing = proxied(server, content)
    address = f"http://127.0.0.1:{passing.server_address[1]}/"
    source = chromium("--dump-dom", "--window-size=1280,900", address)
    if keep:
        for width in (1280, 390):
            for mode in ("light", "dark"):
                chromium(f"--screenshot={keep / f'serve-{name}-{width}-{mode}.png'}", f"--window-size={width},900",
                         *(["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if mode == "dark" else []), address)
    passing.shutdown()
    return source


def ask_page(browser, server, image, width, scheme):
    """The page itself, with its token and its policy; the file is chosen as by its dialog. What it says."""
    browser.open(f"{server.url}/?token={server.token}", width=width, height=900, scheme=scheme, drawn="document.body.dataset.drawn")
    browser.give_files("#file", pathlib.Path(image).resolve())
    browser.wait_for("document.body.dataset.answered")
    browser.wait_for("document.querySelector('#result img').complete")
    assert browser.evaluate("document.body.dataset.answered") == "yes", browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.querySelector('#result img').naturalWidth") > 0, "no picture is shown"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, "wider than the screen"
    torn = browser.evaluate("""[...document.querySelectorAll('#answers .row > *')].filter(part => {
        const box = part.getBoundingClientRect(), panel = part.closest('.panel').getBoundingClientRect();
        return box.right > panel.right || box.height > 2.6 * parseFloat(getComputedStyle(part).fontSize) * 1.5;
    }).map(part => part.textContent)""")
    assert not torn, ("words outside their panel, or in pieces", torn)
    faint = browser.faint_texts()
    assert not faint and not browser.errors, (scheme, width, faint, browser.errors)
    return browser.evaluate("document.querySelector('#answers').innerText")


def luminance(colour):
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1:-1].split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_contrast(browser, scheme):
    """Text against the page, as WCAG asks of small text; and a dark page is dark."""
    back, text, soft = (luminance(browser.evaluate(f"getComputedStyle(document.querySelector('{where}')).{what}"))
                        for where, what in (("body", "backgroundColor"), ("body", "color"), ("#drop span", "color")))
    for one in (text, soft):
        assert (max(one, back) + 0.05) / (min(one, back) + 0.05) >= 4.5, (scheme, back, one)
    assert (back < 0.2) == (scheme == "dark"), (scheme, back)


def check_keyboard(browser, server):
    browser.open(f"{server.url}/?token={server.token}", drawn="document.body.dataset.drawn")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.id") == "file"
    assert browser.evaluate("getComputedStyle(document.getElementById('drop')).outlineStyle") != "none", "focus is not seen"
    browser.evaluate("window.asked = 0; document.getElementById('file').addEventListener('click', e => { e.preventDefault(); asked++; })")
    browser.press("Enter")
    assert browser.evaluate("asked") == 1, ("Enter asks for a file, once", browser.evaluate("asked"))


def check_shown(browser, server, image, keep, name, words):
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            said = ask_page(browser, server, image, width, scheme)
            assert words in said and "base64" not in said and "{" not in said, said
            check_contrast(browser, scheme)
            if keep:
                browser.screenshot(keep / f"serve-{name}-{width}-{scheme}.png")


def check_others(browser, keep):
    for task, (made, packed, more, image, words) in OTHERS.items():
        lockstep("prep", *made, "--to", f"{task}.files")
        lockstep("prep", f"{task}.files", *packed, "--to", f"{task}.set")
        job = {"name": task, "task": task, "training": SMALL, **more}
        job["data"] = {"train": f"{task}.set/train", "validate": f"{task}.set/validate", "threads": 1, **more["data"]}
        pathlib.Path(f"{task}.json").write_text(json.dumps(job))
        lockstep("train", f"{task}.json", "--run", f"{task}.run")
        if image is None:  # of a radar: a strip out of the shards
            subprocess.run(["tar", "-xf", next(pathlib.Path(f"{task}.set/validate").glob("*.tar"))], check=True)
            image = next(pathlib.Path(".").glob("*.png"))
        else:
            image = pathlib.Path(f"{task}.files/{image}")
            image = min(image.iterdir()) if image.is_dir() else image
        with Served(f"{task}.run") as server:
            check_shown(browser, server, image, keep, task, words)
            about = browser.evaluate(f"fetch('/v2/models/{task}').then(answer => answer.json())")
            assert about["inputs"] == [{"name": "image", "datatype": "BYTES", "shape": [-1]}], about
            assert server.end() == 0


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if sys.argv[1:2] == ["--keep"] else None
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lockstep-page-") as folder:
        os.chdir(folder)
        lockstep("prep", "--synthesize", "shapes", "--count", "60", "--classes", "3", "--to", "set")
        pathlib.Path("job.json").write_text(json.dumps(JOB))
        lockstep("train", "job.json", "--run", "run")
        image = sorted(path for path in pathlib.Path("set/train").rglob("*") if path.suffix in (".png", ".jpg"))[0]
        with Served("run") as server:
            source = open_page(server, image.read_bytes(), keep, "answer")
            dom = Dom(source)
            assert dom.drawn and "problem" not in dom.ids and 'data-answered="yes"' in source, source[-3000:]
            text = "".join(dom.text)
            assert text.count(" %") == 3 and "dropped <b>.png" in text and "answered in" in text, text
            assert dom.classes["bar"] == 3 and dom.tags["img"] == 1 and {"drop", "file", "state"} <= dom.ids
            wrong = open_page(server, b"no image at all", keep, "refused")
            assert 'data-answered="no"' in wrong and "neither JPEG" in "".join(Dom(wrong).text), wrong[-3000:]
            with Browser() as browser:
                check_shown(browser, server, image, keep, "classes", "%")
                check_keyboard(browser, server)
            assert server.end() == 0
        with Browser() as browser:
            check_others(browser, keep)
    print("serve.py: an image dropped is answered with 3 classes, nonsense with the reason; by the keyboard, at two widths, light and "
          f"dark; {', '.join(OTHERS)} likewise")


if __name__ == "__main__":
    main()
