# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: a run as it is seen from outside (its processes, its journal, the heartbeats of its ranks), a
folder to work in, and the last lines that every one of them prints."""
import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()
LOCKSTEP = str(BUILD / "bin/lockstep")
GONE = 60  # seconds for processes to end: only one that never does needs them, whatever else the machine has to do


def process(pid):
    """(parent's pid, session) of a process; None when there is none, or a zombie, which signals no longer reach."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[1]), int(fields[3])) if fields[0] != "Z" else None


def processes():
    """pid -> (parent's pid, session) of every process that is not a zombie."""
    found = {int(entry): process(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    return {pid: row for pid, row in found.items() if row}


def members(session):
    """The processes of a session."""
    return [pid for pid, (_, its_session) in processes().items() if its_session == session]


def parents():
    return {pid: parent for pid, (parent, _) in processes().items()}


STARTED = []  # every Run: none outlives its test, also not one whose time is over


def end_all():
    for run in STARTED:
        run.end()


atexit.register(end_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))


def own_environment(folder):
    """Ranks that are killed leave the files of their shared memory behind: in the test's folder, not in /dev/shm."""
    (folder / "shared").mkdir(exist_ok=True)
    return {**os.environ, "OMPI_MCA_btl_vader_backing_directory": str(folder / "shared")}


@contextlib.contextmanager
def watching_closely():
    """A step takes some milliseconds: who watches for it should not wait for its turn. Without root it stays a wish."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)  # what is started from here on inherits it


class Run:
    """`lockstep train job.json --ranks N` in `folder`, started as often as needed, also on other numbers of ranks;
    everything it says is in one log. One rank is a process without a supervisor."""

    def __init__(self, folder, name, ranks, words=(), job="job.json", preload=None):
        self.folder, self.name, self.path, self.ranks = folder, name, folder / name, ranks
        self.job, self.log = job, folder / f"{name}.log"
        self.words = [LOCKSTEP, "train", job, "--run", name, *words]
        self.env = own_environment(folder) | ({"LD_PRELOAD": str(preload)} if preload else {})
        self.gate = folder / f"{name}.gate"
        self.process, self.sessions_before = None, 0
        STARTED.append(self)

    def start(self, ranks=None):
        self.ranks = ranks or self.ranks
        words = self.words + (["--ranks", str(self.ranks)] if self.ranks > 1 else [])
        self.sessions_before = len(self.events("start", "resume"))
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=log, stderr=log, start_new_session=True)
        return self

    def hold(self, step):
        """With build_hold()'s library preloaded: no checkpoint of a later step gets its name, and the run waits for it at its next
        save, until this is called again or let_go()."""
        self.gate.write_text(str(step))

    def let_go(self):
        self.gate.unlink(missing_ok=True)

    def finish(self, ranks=None, seconds=600):
        """From a start to the end; a run that does not get there ends the test."""
        code = self.start(ranks).wait(seconds)
        if code != 0:
            self.end()
            sys.exit(f"{self.name}: exit code {code}\n{self.tail()}")
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

    def heartbeats(self):
        found = {}
        for rank in range(self.ranks):
            try:
                text = (self.path / "ranks" / f"{rank}.heartbeat").read_text()
                found[rank] = json.loads(text[9:])
            except (OSError, ValueError):
                pass
        return found

    def living_ranks(self):
        """rank -> pid of those with a heartbeat that have not ended."""
        up = parents()
        return {rank: heartbeat["pid"] for rank, heartbeat in self.heartbeats().items() if "end" not in heartbeat and heartbeat["pid"] in up}

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

    def since_start(self, *names):
        """Events of what was started last, not of earlier sessions; none before its own `start` or `resume`."""
        rows, sessions = [], 0
        for row in self.events():
            sessions += row["event"] in ("start", "resume")
            if sessions > self.sessions_before and row["event"] in names:
                rows.append(row)
        return rows

    def saved(self):
        return max((row["step"] for row in self.events("save")), default=0)

    def ended(self):
        """What the journal says of its end."""
        return self.events("end")[-1]

    def digest(self):
        return hashlib.sha256((self.path / "weights.safetensors").read_bytes()).hexdigest()

    def tail(self, lines=25):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def kill(self):
        """SIGKILL to all of its session, supervisor, launcher and ranks alike, as when a node loses its power."""
        def left():
            return [pid for pid in members(self.process.pid) if send(pid, signal.SIGKILL)]
        if not until(lambda: not left(), GONE, 0.005):
            sys.exit(f"{self.name}: processes {left()} outlive SIGKILL")
        self.process.wait()

    def end(self):
        """Ends whatever is left of it; for a test that failed."""
        if self.process and self.running():
            self.kill()


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


def gone(pids, seconds=GONE):
    """Whether all these processes have ended within that time."""
    return until(lambda: not (set(pids) & parents().keys()), seconds) is not None


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores, {model}"


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def seed_from(words, position):
    """The seed that was given, as a word or as SEED, or a new one; printed, so that a run can be tried again."""
    seed = int(words[position] if len(words) > position else os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"seed {seed}", flush=True)
    return seed


@contextlib.contextmanager
def folder_for(name, job=None):
    """A folder for the length of a test, with job.json in it."""
    with tempfile.TemporaryDirectory(prefix=f"lockstep-{name}-") as path:
        folder = pathlib.Path(path)
        if job is not None:
            (folder / "job.json").write_text(json.dumps(job))
        yield folder


def build_shim(folder):
    """disk_shim.c as a library to preload."""
    shim = folder / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", shim, ROOT / "tests/faults/disk_shim.c",
                    "-ldl", "-lpthread"], check=True)
    return shim


def build_hold(folder):
    """hold.c as a library to preload, so that the test decides how far a run comes, not the processor's speed."""
    library = folder / "hold.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, ROOT / "tests/slurm/hold.c", "-ldl"], check=True)
    return library


FAULTS_OF_A_CALL = ("kill", "torn", "enospc", "eio")  # disk_shim.c


def faults_at_calls(calls, pool, one_fault, cases=None, end=None):
    """Tries the faults of every call, or `cases` of them until `end`, as many at once as there are cores. one_fault(how, at)
    says what went wrong; empty: nothing. Returns the numbers that passed and failed."""
    if cases is None:
        cases = [(how, at) for at in range(len(calls)) for how in FAULTS_OF_A_CALL]
    passed = failed = 0
    at_once = len(os.sched_getaffinity(0))
    while cases and (end is None or time.monotonic() < end or passed + failed == 0):
        some, cases = cases[:at_once], cases[at_once:]
        for (how, at), wrong in zip(some, pool.map(lambda case: one_fault(*case), some)):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"{how} at call {at}, {calls[at]}: {wrong}", flush=True)
    return passed, failed


def rounds_until(end, one_round):
    """one_round(number) gives its kills, or a text that says what went wrong, which ends it; one round at least. Returns the
    numbers of rounds, kills and failures."""
    rounds = kills = 0
    while rounds == 0 or time.monotonic() < end:
        result = one_round(rounds)
        if isinstance(result, str):
            print(f"round {rounds}: {result}")
            return rounds, kills, 1
        rounds, kills = rounds + 1, kills + result
    return rounds, kills, 0


def verdict(name, passed, failed, faults):
    """The last lines of a fault test, and its exit code. scripts/test_long.sh adds the faults up."""
    print(f"faults injected: {faults}")
    print(f"{name}: {passed} passed, {failed} failed", flush=True)
    return 0 if passed and faults and not failed else 1
