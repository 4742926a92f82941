#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the planner page, build/planner/planner.html: one file with the program's own planning code as WebAssembly and
recordings of the networks of planner/zoo.json. `make planner-page` builds record_zoo before it.

build.py [NETWORK...]: a page with these networks alone (for tests).
"""
import base64
import concurrent.futures
import gzip
import hashlib
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
FOLDER = BUILD / "planner"
JOBS = int(os.environ.get("JOBS", "2"))
# What decides a recording: a change there makes those that are kept stale.
TRACED = ("spec/*", "task/*", "kernel/*", "model/*", "objective/*", "step/*", "comm/*", "trace/*", "forecast/recording*",
          "forecast/attention*", "forecast/search*", "planning/traced_job*", "planning/recorded_zoo*",
          "planning/recording_pack*", "planning/evaluation_part*", "verbs/plan/simulated_tracer*")
MOST_BYTES = 10_000_000


def read_zoo():
    text = (ROOT / "planner/zoo.json").read_text()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def stamp_of(zoo, network):
    digest = hashlib.sha256(json.dumps([zoo["recipes"], network], sort_keys=True).encode())
    sources = [ROOT / "planner/record_zoo.cpp"]
    for pattern in TRACED:
        sources += sorted((ROOT / "lockstep").glob(pattern))
    for source in sources:
        if source.suffix in (".h", ".cpp") and not source.name.endswith("_test.cpp"):
            digest.update(source.read_bytes())
    return digest.hexdigest()


def record(zoo, network):
    """The recordings of a network, made again only where something that decides them has changed; none where they do not
    hold (record_zoo says why): the page is made without that network, and main() ends with an error that names it."""
    file, stamp = FOLDER / "zoo" / f"{network['name']}.zoo", FOLDER / "zoo" / f"{network['name']}.stamp"
    wanted = stamp_of(zoo, network)
    if file.exists() and stamp.exists() and stamp.read_text() == wanted:
        return file
    done = subprocess.run([BUILD / "bin/record_zoo", ROOT / "planner/zoo.json", FOLDER / "zoo", network["name"]],
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        print(f"planner-page: {network['name']} is left out", file=sys.stderr)
        return None
    stamp.write_text(wanted)
    return file


def compile_page():
    if not shutil.which("emcmake"):
        sys.exit("planner-page: Emscripten is not installed; scripts/deps.sh page installs it (Debian: emscripten)")
    folder = FOLDER / "wasm"
    # Debian's cache is frozen; a node that is not Debian's does not look for Debian's modules.
    environment = {**{key: value for key, value in os.environ.items() if key != "EM_CACHE"}, "NODE_PATH": "/usr/share/nodejs"}
    if not (folder / "build.ninja").exists():
        subprocess.run(["emcmake", "cmake", "-S", ROOT / "planner", "-B", folder, "-G", "Ninja"], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, f"-j{JOBS}", "--quiet"], check=True, env=environment)
    return folder / "planner.wasm", folder / "planner.js"


def packed(data, name):
    """A block of data in the page; the browser unpacks it when it is asked for."""
    text = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{html.escape(name)}">{text}</script>\n'


def version():
    return re.search(r'LOCKSTEP_VERSION "([^"]+)"', (ROOT / "lockstep/version.h").read_text())[1]


def script_safe(value):
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def assemble(zoo, wasm, script, recordings):
    code = script.read_text()
    assert "</script" not in code, "the page's script would end early"
    data = packed(wasm.read_bytes(), "wasm") + "".join(packed(file.read_bytes(), f"zoo-{file.stem}") for file in recordings)
    known = {"zoo": script_safe(zoo), "data": data, "planner.js": code, "version": version()}

    def fill(match):
        return known[match[1]] if match[1] in known else (ROOT / match[1]).read_text()
    return re.sub(r"@\[([\w./-]+)\]", fill, (ROOT / "planner/page.html").read_text())


def main():
    start = time.monotonic()
    zoo = read_zoo()
    if sys.argv[1:]:
        zoo["networks"] = [network for network in zoo["networks"] if network["name"] in sys.argv[1:]]
    (FOLDER / "zoo").mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        recordings = [file for file in pool.map(lambda network: record(zoo, network), zoo["networks"]) if file]
    names = [file.stem for file in recordings]
    left_out = [network["name"] for network in zoo["networks"] if network["name"] not in names]
    if not names:
        sys.exit(f"planner-page: no recording holds (see above): {' '.join(left_out)}")
    zoo["networks"] = [network for network in zoo["networks"] if network["name"] in names]
    zoo["first"] = names[0]
    wasm, script = compile_page()
    page = assemble(zoo, wasm, script, recordings)
    out = FOLDER / "planner.html"
    out.write_text(page)
    size = len(page.encode())
    print(f"{out.relative_to(ROOT) if out.is_relative_to(ROOT) else out}: {size / 1e6:.2f} MB, {len(names)} networks, "
          f"{time.monotonic() - start:.0f} s")
    if size > MOST_BYTES:
        sys.exit(f"planner-page: more than {MOST_BYTES / 1e6:.0f} MB; record fewer networks or recipes (planner/zoo.json)")
    if left_out:
        sys.exit(f"planner-page: without {' '.join(left_out)}, whose recordings do not hold (see above)")


if __name__ == "__main__":
    main()
