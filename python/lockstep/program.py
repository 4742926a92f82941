# SPDX-License-Identifier: Apache-2.0
"""The program: where it is, how it is called, and its errors as exceptions."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Union

PathLike = Union[str, "os.PathLike[str]"]
Job = Union[PathLike, Mapping[str, Any]]
Settings = Mapping[str, Any]

HERE = pathlib.Path(__file__).resolve().parent


class LockstepError(RuntimeError):
    """What the program refused: `what` is wrong, the `fix`, and its `exit_code`."""

    def __init__(self, what: str, fix: str = "", exit_code: int = 4) -> None:
        super().__init__(what if not fix else f"{what}\n  fix: {fix}")
        self.what, self.fix, self.exit_code = what, fix, exit_code


class UserError(LockstepError):
    """The job, a file or an argument must change."""


class MachineError(LockstepError):
    """The machine must change: memory, a package, a disk. Of plan: nothing fits."""


class BugError(LockstepError):
    """The program must change."""


class Stopped(LockstepError):
    """Stopped in order, everything saved: the same call goes on."""


_CLASSES = {2: UserError, 3: MachineError, 4: BugError, 85: Stopped}


def find() -> str:
    """The executable: $LOCKSTEP_PROGRAM, that of the wheel, or the one on the PATH."""
    given = os.environ.get("LOCKSTEP_PROGRAM")
    wheel = HERE / "bin" / "lockstep"
    found = given or (str(wheel) if wheel.exists() else shutil.which("lockstep"))
    if found:
        return found
    raise MachineError("the program 'lockstep' is not there", "`pip install .` in the source tree brings it along; of `make build`: "
                       "put build/bin on the PATH", 3)


def environment() -> dict[str, str]:
    """What the program needs where torch is not in the folder beside this package (another prefix, a site's module)."""
    variables = dict(os.environ)
    spec = importlib.util.find_spec("torch")  # finds it, imports nothing
    if spec and spec.origin and (HERE / "bin" / "lockstep").exists():
        folder = pathlib.Path(spec.origin).parent
        if folder.parent != HERE.parent:
            variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(folder / "lib"), variables.get("LD_LIBRARY_PATH")]))
    return variables


def error_of(exit_code: int, said: str) -> LockstepError:
    """The program's last message as an exception."""
    found = list(re.finditer(r"^lockstep: (?:user error|machine error|bug): ", said, re.M))
    words = said[found[-1].end():] if found else said[-4000:]
    what, _, fix = words.strip().partition("\n  fix: ")
    if exit_code == 85 and not found:
        what, fix = "stopped in order, everything saved", "the same call goes on"
    return _CLASSES.get(exit_code, LockstepError)(what or f"exit code {exit_code}", fix.strip(), exit_code)


def settings_words(settings: Settings | None) -> list[str]:
    """{"training.epochs": 3} as --set training.epochs=3."""
    words: list[str] = []
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


@contextmanager
def job_file(job: Job) -> Iterator[str]:
    """A job document as a file: its path, or a dictionary written for as long as it is needed."""
    if not isinstance(job, Mapping):
        yield os.fspath(job)
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        path = pathlib.Path(folder) / "job.json"
        path.write_text(json.dumps(job, indent=2))
        yield str(path)


def ask(words: Sequence[str], accept: Sequence[int] = (0,)) -> Any:
    """Calls the program with --json and gives what it wrote there. Exit codes in `accept` are answers too, where they come with
    one."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        answer = pathlib.Path(folder) / "answer.json"
        done = subprocess.run([find(), *words, "--json", str(answer)], env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
        if done.returncode not in accept or not answer.exists():
            raise error_of(done.returncode, done.stderr or done.stdout)
        return json.loads(answer.read_text())
