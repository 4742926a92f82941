#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the page of `lockstep serve` in headless Chromium, drops an image and nonsense on it, at desktop and phone width.

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
sys.path[:0] = [str(ROOT / "tests/serve"), str(ROOT / "tests/pages")]
from report import Dom, chromium  # noqa: E402
from served import LOCKSTEP, Served  # noqa: E402

JOB = {"name": "shapes", "data": {"train": "set/train", "image_size": 16, "threads": 1},
       "model": {"name": "smallcnn", "width": 4}, "training": {"global_batch": 8, "epochs": 4, "threads": 1}}

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
            assert server.end() == 0
    print("serve.py: an image dropped is answered with 3 classes, nonsense with the reason")


if __name__ == "__main__":
    main()
