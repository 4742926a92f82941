# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium driven through a pipe by the DevTools protocol: no port is opened, nothing is installed."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120  # seconds, against a hang

# Texts with less contrast to what lies below them than WCAG 2.2 asks of AA: 4.5, 3 where they are large. Layers that are partly
# transparent are put on each other; pictures are no ground.
FAINT = """(() => {
    const parse = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return text.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a]; };
    const over = (front, back) => [0, 1, 2].map(i => front[3] * front[i] + (1 - front[3]) * back[i]);
    const ground = node => {
        const layers = [];
        for (let at = node; at; at = at.parentElement) {
            const color = parse(getComputedStyle(at).backgroundColor);
            if (color[3] > 0) layers.push(color);
            if (color[3] === 1) break;
        }
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const light = color => color.map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, i) => sum + [0.2126, 0.7152, 0.0722][i] * value, 0);
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; node = walker.nextNode();) {
        const host = node.parentElement, style = getComputedStyle(host);
        if (!node.data.trim() || ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(host.tagName) || !host.checkVisibility()) continue;
        const below = ground(host), front = over(parse(host instanceof SVGElement ? style.fill : style.color), below);
        const [low, high] = [light(front), light(below)].sort((a, b) => a - b);
        const ratio = (high + 0.05) / (low + 0.05), size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
        if (ratio < (large ? 3 : 4.5)) found.push(`${node.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
    return found;
})()"""


class Browser:
    def __init__(self, *flags):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its children write there to the last
        to_browser, from_browser = os.pipe(), os.pipe()

        def hand_over():  # the protocol's pipes are descriptors 3 and 4
            read, write = os.dup(to_browser[0]), os.dup(from_browser[1])
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", *flags],
            preexec_fn=hand_over, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.out, self.incoming, self.buffer = to_browser[1], from_browser[0], b""
        os.set_blocking(self.out, False)
        self.number, self.session = 0, None
        self.errors = []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "DOM"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.out)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:  # it hangs: what the test said of that must not wait for it
            self.process.kill()
            self.process.wait()
        os.close(self.incoming)
        self.profile.cleanup()

    def send(self, message, until):
        left = json.dumps(message).encode() + b"\0"
        while left:
            ready = select.select([], [self.out], [], max(0, until - time.monotonic()))[1]
            assert ready, f"Chromium hangs: {message['method']} was not taken within {PATIENCE} s"
            left = left[os.write(self.out, left):]

    def receive(self, method, until):
        while b"\0" not in self.buffer:
            ready = select.select([self.incoming], [], [], max(0, until - time.monotonic()))[0]
            assert ready, f"Chromium hangs: {method} was not answered within {PATIENCE} s"
            part = os.read(self.incoming, 1 << 20)
            assert part, "Chromium ended"
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        until = time.monotonic() + PATIENCE
        self.send(message, until)
        while True:
            said = self.receive(method, until)
            if said.get("method") == "Runtime.exceptionThrown":
                self.errors.append(said["params"]["exceptionDetails"])
            if said.get("id") == self.number:
                assert "error" not in said, (method, said["error"])
                return said["result"]

    def evaluate(self, code):
        """The value of an expression; promises are waited for."""
        said = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def open(self, address, width=1280, height=900, scheme="light", before="", drawn="document.documentElement.dataset.drawn"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        script = self.call("Page.addScriptToEvaluateOnNewDocument", source=before)["identifier"]
        # The answer may come before the old document is gone, which is drawn already: the mark is on that one alone.
        self.evaluate("document.isBefore = true")
        self.call("Page.navigate", url=address)
        self.wait_for(f"!document.isBefore && document.body && document.documentElement && {drawn}")
        self.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)

    def wait_for(self, expression):
        start = time.monotonic()
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() - start < PATIENCE, f"never true: {expression}"
            time.sleep(.02)

    def wait_until_drawn(self):
        self.wait_for("document.documentElement && document.documentElement.dataset.drawn")

    def drawn_again(self, action):
        """Does something to the page and waits until it has drawn a plan, or said what is wrong."""
        self.evaluate("delete document.documentElement.dataset.drawn")
        action()
        self.wait_until_drawn()

    def press(self, key):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}
        extra = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **extra)

    def give_files(self, selector, *files):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])

    def drop(self, *files, at=(200, 200)):
        """Files that come from outside and are let go over the page, as a hand does it: events of the browser, not of a script."""
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=at[0], y=at[1], data=data)

    def faint_texts(self):
        return self.evaluate(FAINT)

    def screenshot(self, file, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                         **({"clip": self.whole_page()} if whole else {}))["data"]
        pathlib.Path(file).write_bytes(base64.b64decode(data))

    def whole_page(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
