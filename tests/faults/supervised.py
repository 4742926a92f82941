# SPDX-License-Identifier: Apache-2.0
"""A supervised run as the fault tests see it from outside: its processes, its journal, the beats of its ranks."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")


def parents():
    """pid -> parent's pid of every process that is not a zombie."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(stat.parent.name)] = int(fields[1])
    return found


class Run:
    """`lockstep train job.json --ranks N` in `folder`, started as often as needed; everything it says is in one log."""

    def __init__(self, folder, name, ranks, words=()):
        self.folder, self.path, self.ranks = folder, folder / name, ranks
        self.log = folder / f"{name}.log"
        self.words = [LOCKSTEP, "train", "job.json", "--run", name, "--ranks", str(ranks), *words]
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.words, cwd=self.folder, stdout=log, stderr=log, start_new_session=True)
        return self

    def running(self):
        return self.process.poll() is None

    def wait(self, seconds):
        """Its exit code; None when it is not done in that time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def descendants(self):
        up = parents()
        def belongs(pid):
            while pid in up and pid != self.process.pid:
                pid = up[pid]
            return pid == self.process.pid
        return [pid for pid in up if pid != self.process.pid and belongs(pid)]

    def launcher(self):
        """mpirun's pid; None between two worlds."""
        for pid, parent in parents().items():
            if parent == self.process.pid:
                return pid
        return None

    def beats(self):
        found = {}
        for rank in range(self.ranks):
            try:
                text = (self.path / "ranks" / f"{rank}.beat").read_text()
                found[rank] = json.loads(text[9:])
            except (OSError, ValueError):
                pass
        return found

    def living_ranks(self):
        """rank -> pid of those that beat and have not ended."""
        up = parents()
        return {rank: beat["pid"] for rank, beat in self.beats().items() if "end" not in beat and beat["pid"] in up}

    def events(self, *names):
        journal = self.path / "journal.jsonl"
        rows = []
        for line in journal.read_text().splitlines() if journal.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a kill tore it
            if not names or row["event"] in names:
                rows.append(row)
        return rows

    def saved(self):
        return max((row["step"] for row in self.events("save")), default=0)

    def digest(self):
        return hashlib.sha256((self.path / "weights.safetensors").read_bytes()).hexdigest()

    def tail(self, lines=25):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def end(self):
        """Ends whatever is left of it; for a test that failed."""
        if self.process and self.running():
            for pid in self.descendants():
                send(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()


def send(pid, number):
    """True when the process was there to get it."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def until(condition, seconds, pause=0.02):
    """The first true value of condition(), or None after that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    return None


def gone(pids, seconds):
    """Whether all these processes have ended within that time."""
    return until(lambda: not (set(pids) & parents().keys()), seconds) is not None


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores, {model}"


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
