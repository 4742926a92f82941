# SPDX-License-Identifier: Apache-2.0
"""lockstep.train: the program trains, the notebook shows how far it is."""
from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

from . import program
from .runs import Run

BETWEEN_LOOKS = 0.25  # seconds


class _Bar:
    """tqdm's bar where it is installed (a widget in a notebook), else a line an epoch."""

    def __init__(self, shown: bool) -> None:
        self.shown, self.bar = shown, None
        self.make: Any = None
        if shown:
            try:
                from tqdm.auto import tqdm
                self.make = tqdm
            except ImportError:
                pass

    def take(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if not self.shown:
            return
        if kind in ("start", "resume") and self.make and self.bar is None:
            self.bar = self.make(total=event["total_steps"], initial=event.get("step", 0), unit="step", desc=event["name"])
        elif kind == "step" and self.bar is not None:
            self.bar.update(event["step"] - self.bar.n)
            if "loss" in event:
                self.bar.set_postfix(loss=f"{event['loss']:.4g}", epoch=f"{event['epoch']:.2f}", refresh=False)
        elif kind == "evaluate":
            self._say(f"epoch {event['epoch']:.2f}: {event['split']} {event['headline']['text']}")

    def _say(self, text: str) -> None:
        if self.bar is not None:
            self.bar.write(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _news(journal: pathlib.Path, position: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Whole lines behind `position`, each with the position behind it."""
    if not journal.exists():
        return
    with journal.open("rb") as file:
        file.seek(position)
        for line in file:
            if not line.endswith(b"\n"):
                return
            position += len(line)
            try:
                yield position, json.loads(line)
            except ValueError:
                continue


def _follow(child: subprocess.Popen[bytes], journal: pathlib.Path, position: int, bar: _Bar) -> None:
    while True:
        ended = child.poll() is not None
        for position, event in _news(journal, position):
            bar.take(event)
        if ended:
            return
        time.sleep(BETWEEN_LOOKS)


def _run_folder(file: str, settings: program.Settings | None) -> pathlib.Path:
    job = program.ask(["explain", "--check", file, *program.settings_words(settings)])
    return pathlib.Path("runs") / str(job["name"])


def _wait(child: subprocess.Popen[bytes], journal: pathlib.Path, position: int, bar: _Bar) -> None:
    try:
        _follow(child, journal, position, bar)
    except BaseException:  # the notebook's stop button, or an error of ours: the run saves, then the call ends
        child.send_signal(signal.SIGINT)
        child.wait()
        raise
    finally:
        bar.close()


def train(job: program.Job, run: program.PathLike | None = None, *, ranks: int = 1, device: str | None = None,
          plan: program.PathLike | None = None, settings: program.Settings | None = None, progress: bool = True,
          options: Sequence[str] = ()) -> Run:
    """Trains `job` into the folder `run` (default: runs/ and the job's name) and gives the run; one that stopped goes on.

    settings={"training.epochs": 3} are --set. Interrupting the cell saves first; the same call goes on from there.
    """
    with program.job_file(job) as file, tempfile.TemporaryFile() as said:
        folder = pathlib.Path(run) if run is not None else _run_folder(file, settings)
        journal = folder / "journal.jsonl"
        position = journal.stat().st_size if journal.exists() else 0
        words = ["train", file, "--run", str(folder), *program.settings_words(settings)]
        words += ["--ranks", str(ranks)] if ranks > 1 else []
        words += ["--device", device] if device else []
        words += ["--plan", str(plan)] if plan else []
        # In a session of its own: Ctrl-C in a terminal reaches the program once, through the handler below.
        child = subprocess.Popen([program.find(), *words, *options], env=program.environment(), stdin=subprocess.DEVNULL,
                                 stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
        _wait(child, journal, position, _Bar(progress))
        if child.returncode != 0:
            raise program.error_of(child.returncode, _text(said))
        return Run(folder)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
