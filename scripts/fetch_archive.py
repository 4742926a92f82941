#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches files of the Python package index as they are: fetch_archive.py FOLDER PACKAGE FILE SHA256 [...].

`pip download` of a source archive begins to build it; here nothing is run. The index is the one that pip asks.
"""
import hashlib
import html
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import urllib.request

from pip._internal.models.index import PyPI


def index():
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    return os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or PyPI.simple_url


def fetch(folder, package, name, digest):
    target = folder / name
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
        return
    page = f"{index().rstrip('/')}/{package}/"
    with urllib.request.urlopen(page, timeout=60) as answer:
        links = re.findall(r'href="([^"]+)"', answer.read().decode())
    link = next((html.unescape(link) for link in links if f"/{name}" in urllib.parse.unquote(link)), None)
    if not link:
        sys.exit(f"{package}: the index has no {name}")
    with urllib.request.urlopen(urllib.parse.urljoin(page, link), timeout=300) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != digest:
        sys.exit(f"{name}: another SHA-256 than {digest}")
    part = target.with_name(name + ".part")
    part.write_bytes(content)
    part.rename(target)


def main():
    folder, words = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(0, len(words), 3):
        fetch(folder, *words[i:i + 3])


if __name__ == "__main__":
    main()
