#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the pages about runs that are watched in headless Chromium: several runs beside each other, and a live one, which is
paused and read by the keyboard; both at desktop and phone width, light and dark.

watch.py [--keep DIR]: also writes screenshots (1280 and 390 wide, light and dark) for people to look at.
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from report import HOSTILE, LOCKSTEP, Browser, Dom, check_shown, chromium, reach_chart, told, write_run


def check_comparison(folder, keep):
    runs = [folder / "small-lr", folder / "large-lr", folder / f"odd & <b>{HOSTILE[:9].replace('/', '_')}"]
    for i, run in enumerate(runs):
        write_run(run, ["cat", "dog", "owl"], epochs=3 + i, crash=i == 1, plan=i < 2)
        (run / "job.json").write_text(json.dumps({"name": "pets", "training": {"optimizer": {"lr": 0.1 * (i + 1)}}}))
    page = folder / "comparison.html"
    subprocess.run([LOCKSTEP, "report", *runs, "--out", page], check=True, stdout=subprocess.DEVNULL)
    dom = Dom(chromium("--dump-dom", page.as_uri()))
    assert dom.drawn and "problem" not in dom.ids, "the comparison is not drawn"
    assert dom.classes.get("curve", 0) >= 12, dom.classes
    for words in ("3 runs", "small-lr", "training.optimizer.lr", "Fact against promise", "Why is it not faster?", "What differs"):
        assert dom.shows(words), words
    assert dom.shows(runs[2].name), "a hostile name is text"
    assert dom.shows(", outside"), "a promise that was not kept"
    check_shown(page.as_uri(), keep, "comparison")


def fetch(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def append_step(run, step, ask):
    """Waits until the server tells of the step, which it looks for twice a second; what it tells then."""
    with (run / "journal.jsonl").open("a") as journal:
        line = {"v": 1, "t": 1.9e9, "event": "step", "step": step, "epoch": step / 55, "loss": .5, "samples": 60, "seconds": 1}
        journal.write(json.dumps(line) + "\n")
    for _ in range(1200):
        news = ask()
        if news["steps"] and news["steps"][-1]["step"] == step:
            return news
        time.sleep(.1)
    raise AssertionError(f"step {step} is not told: {news['cursor']}")


def check_keyboard(address, go_on):
    """Tab and Enter pause the page, which is at step 221; Enter lets it take what came meanwhile. It rests, too, while keys read a
    chart, which another drawing would take away under them."""
    with Browser() as browser:
        shown = lambda: browser.evaluate("[document.documentElement.dataset.step, parts.news.textContent]")
        browser.open(address)
        browser.press("Tab")
        assert browser.evaluate("document.activeElement.id") == "pause"
        assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", "focus is not seen"
        browser.press("Enter")
        assert browser.evaluate("document.activeElement.ariaPressed") == "true"
        browser.wait_for("!asking")
        go_on(222)
        browser.evaluate("ask()")
        assert shown() == ["221", "paused"], shown()
        browser.press("Enter")
        assert browser.evaluate("document.activeElement.ariaPressed") == "false"
        browser.wait_for("document.documentElement.dataset.step === '222'")
        reach_chart(browser)
        browser.press("End")
        browser.wait_for("!asking")
        go_on(223)
        browser.evaluate("ask()")
        assert shown() == ["222", "rests while a chart is read"] and told(browser), shown()
        browser.evaluate("document.activeElement.blur()")
        browser.wait_for("document.documentElement.dataset.step === '223'")
        assert not told(browser) and not browser.errors, browser.errors


def check_live(folder, keep):
    run = folder / "live"
    write_run(run, ["cat", "dog"], epochs=4, evaluated=True, plan=True)
    (run / "chain.jsonl").write_text("".join(json.dumps({"v": 1, "t": 1.7e9, **each}) + "\n" for each in (
        {"event": "chain", "name": "pets", "scheduler": "slurm", "planned_links": 2, "max_links": 4},
        {"event": "queued", "job": "41"}, {"event": "begin", "job": "41", "link": 1, "step": 0, "host": "node042"},
        {"event": "finish", "job": "41", "code": 0, "step": 220}, {"event": "close", "why": "done", "step": 220})))
    (run / "link-41.out").write_text("epoch 1  loss 2.1\n<b>not markup</b>\n")
    server = subprocess.Popen([LOCKSTEP, "report", run, "--live"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        root, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/\?token=([0-9a-f]{64})", address).groups()
        assert "ssh -L " in server.stdout.readline()
        assert fetch(f"{root}/run.json")[0] == 401
        assert fetch(f"{root}/run.json", Authorization=f"Bearer {token[:-1]}x")[0] == 401
        bearer = {"Authorization": f"Bearer {token}"}
        status, body = fetch(f"{root}/run.json", **bearer)
        first = json.loads(body)
        assert status == 200 and first["reset"] and len(first["steps"]) == 220, status
        assert fetch(f"{root}/journal.jsonl", **bearer)[0] == 404
        cursor = "&".join(f"{key}={value}" for key, value in first["cursor"].items())
        with (run / "journal.jsonl").open("a") as journal:
            journal.write("\n")  # write_run leaves a torn line at the end
        ask = lambda: json.loads(fetch(f"{root}/run.json?{cursor}", **bearer)[1])
        news = append_step(run, 221, ask)
        assert [each["step"] for each in news["steps"]] == [221] and not news["reset"], news["cursor"]
        dom = Dom(chromium("--dump-dom", address))
        assert dom.drawn and "problem" not in dom.ids, "the live page is not drawn"
        for words in ("Chain of jobs", "node042", "<b>not markup</b>", "Promise against fact", "Why is it not faster?", "Throughput",
                      "Power, watts"):
            assert dom.shows(words), words
        assert dom.tags.get("button") == 1 and dom.classes.get("curve", 0) >= 5, dom.classes
        taken = subprocess.run([LOCKSTEP, "report", run, "--live", "--port", root.rsplit(":", 1)[1]], capture_output=True, text=True, timeout=600)
        assert taken.returncode == 3 and "in use" in taken.stderr, taken.stderr
        check_shown(address, keep, "live")
        check_keyboard(address, lambda step: append_step(run, step, ask))
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=600) == 0


def main():
    keep = pathlib.Path(sys.argv[2]).resolve() if sys.argv[1:2] == ["--keep"] else None
    with tempfile.TemporaryDirectory() as name:
        check_comparison(pathlib.Path(name), keep)
        check_live(pathlib.Path(name), keep)
    print("watch.py: both pages are drawn, at two widths, light and dark; the live one is paused and read by the keyboard")


if __name__ == "__main__":
    main()
