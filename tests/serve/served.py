#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A `lockstep serve` for the length of a command or a `with`: served.py 'ARGUMENTS' 'COMMAND'.

COMMAND is run by bash with URL, PORT, TOKEN and SERVER_PID in its environment. Then the server gets SIGTERM; what it said
and its exit code are printed, and the exit code is the command's, or 1 when the server's is not 0.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKSTEP = shutil.which("lockstep") or str(ROOT / os.environ.get("LOCKSTEP_BUILD", "build") / "bin/lockstep")
PATIENCE = 120  # seconds, against a hang


def record(what, rows):
    """Puts rows into results/serve.json, in the place of those about the same."""
    sys.path.insert(0, str(ROOT / "tests/faults"))
    from supervised import commit, machine
    path = ROOT / "results/serve.json"
    known = json.loads(path.read_text()) if path.exists() else []
    rows = [{"what": what, **row, "commit": commit(), "machine": machine()} for row in rows]
    path.write_text(json.dumps([row for row in known if row["what"] != what] + rows, indent=1) + "\n")


class Served:
    """The server runs inside the `with`; `end()` before its end gives the exit code."""

    name = "lockstep"

    def __init__(self, *arguments, env=None):
        # What else runs here must not decide how many threads compute.
        self.arguments, self.env = [str(word) for word in arguments], dict(env or os.environ, LOCKSTEP_BUSY_CORES="0")

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lockstep-serve-")
        token_file = pathlib.Path(self.folder.name) / "token"
        words = [LOCKSTEP, "serve", *self.arguments]
        if "--port" not in words:
            words += ["--port", "0"]
        if "--no-token" not in words and "--token-file" not in words:
            words += ["--token-file", str(token_file)]
        elif "--token-file" in words:
            token_file = pathlib.Path(words[words.index("--token-file") + 1])
        self.log = open(pathlib.Path(self.folder.name) / "said", "w+")
        self.process = subprocess.Popen(words, stdout=self.log, stderr=subprocess.STDOUT, env=self.env)
        start = time.monotonic()
        while not (found := re.search(r"^serving at (\S+?)/(?:,|$)", self.said(), re.M)):
            if self.process.poll() is not None or time.monotonic() - start > PATIENCE:
                said, code = self.said(), self.process.poll()
                self.__exit__()
                raise RuntimeError(f"the server did not start (exit {code}): {said}")
            time.sleep(0.02)
        self.url = found.group(1)
        self.port = int(self.url.rsplit(":", 1)[1])
        self.token = token_file.read_text().strip() if token_file.exists() else ""
        return self

    def said(self):
        return pathlib.Path(self.log.name).read_text()

    def resident(self):
        """Bytes of memory."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self, patience=PATIENCE):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


def main():
    with Served(*shlex.split(sys.argv[1])) as server:
        env = dict(os.environ, URL=server.url, PORT=str(server.port), TOKEN=server.token, SERVER_PID=str(server.process.pid))
        done = subprocess.run(["bash", "-c", sys.argv[2]], env=env)
        sys.stdout.flush()
        code = server.end()
        print(server.said(), end="")
        print(f"server: exit {code}")
        return done.returncode or (1 if code else 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as wrong:
        sys.exit(str(wrong))
