# SPDX-License-Identifier: Apache-2.0
"""lockstep.Run, evaluate and predict: a run folder as the program left it."""
from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import pages, program

if TYPE_CHECKING:
    import pandas

# What a resume at step S, or a rewind to it, makes void beyond S (docs/formats/journal.md).
_VOID = ("step", "epoch", "evaluate", "save", "nonfinite", "loss_scale_halved", "promise", "bad_sample")


class Run:
    """A run folder: what was trained, how it went, what came of it."""

    def __init__(self, path: program.PathLike) -> None:
        self.path = pathlib.Path(path)
        if not (self.path / "journal.jsonl").exists():
            raise program.UserError(f"{self.path} is no run folder: it has no journal.jsonl", "lockstep.train(job, run=...) makes one", 2)

    @property
    def job(self) -> dict[str, Any]:
        """The job with every default."""
        document: dict[str, Any] = json.loads((self.path / "job.json").read_text())
        return document

    @property
    def journal(self) -> pandas.DataFrame:
        """Every event of all restarts, as the file has them."""
        import pandas
        return pandas.DataFrame(list(self._events()))

    def _events(self) -> Iterable[dict[str, Any]]:
        for line in (self.path / "journal.jsonl").read_text(errors="replace").split("\n"):
            try:
                event = json.loads(line)
            except ValueError:  # a torn last line: a killed process can leave one
                continue
            if event.get("v") == 1:
                yield event

    def _valid(self, kind: str) -> pandas.DataFrame:
        """The events of a kind that still count."""
        import pandas
        rows: list[dict[str, Any]] = []
        for event in self._events():
            if event["event"] == "start":
                rows = []
            elif event["event"] in ("resume", "rewind") and kind in _VOID:
                rows = [row for row in rows if row["step"] <= event["step"]]
            elif event["event"] == kind:
                rows.append(event)
        return pandas.DataFrame(rows).drop(columns=["v", "event"], errors="ignore")

    @property
    def steps(self) -> pandas.DataFrame:
        """A row for each step: loss, learning rate, seconds and where they went."""
        return self._valid("step")

    @property
    def epochs(self) -> pandas.DataFrame:
        return self._valid("epoch")

    @property
    def metrics(self) -> pandas.DataFrame:
        """A row for each evaluation while training; of several of one step the last counts."""
        found = self._valid("evaluate")
        return found.drop_duplicates(["step", "split"], keep="last").reset_index(drop=True) if len(found) else found

    @property
    def pictures(self) -> list[pathlib.Path]:
        """What `evaluate` kept: the worst mistakes."""
        return sorted(path for path in (self.path / "eval").glob("**/*") if path.suffix in (".jpg", ".png"))

    def report(self, out: program.PathLike | None = None) -> pathlib.Path:
        """Writes the page about the run, and gives its path."""
        words = ["report", str(self.path), *(["--out", os.fspath(out)] if out else [])]
        return pathlib.Path(program.ask(words)["report"])

    def evaluate(self, data: program.PathLike | None = None, **more: Any) -> Evaluation:
        return evaluate(self, data, **more)

    def predict(self, images: Any, **more: Any) -> pandas.DataFrame:
        return predict(self, images, **more)

    def __repr__(self) -> str:
        return f"<lockstep.Run {self.path}>"

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            return pages.frame(self.report(pathlib.Path(folder) / "report.html"))


class Evaluation:
    """The program's eval.json: `figures`, and frames of what it has by class."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self.figures = figures

    def __getitem__(self, name: str) -> Any:
        return self.figures[name]

    @property
    def headline(self) -> str:
        return str(self.figures["headline"]["text"])

    @property
    def classes(self) -> pandas.DataFrame:
        """Precision, recall and F1 of each class."""
        import pandas
        return pandas.DataFrame(self.figures["classes"])

    @property
    def confusion(self) -> pandas.DataFrame:
        """Rows: what it is; columns: what the network said."""
        import pandas
        names = [row["name"] for row in self.figures["classes"]]
        return pandas.DataFrame(self.figures["confusion"], index=names, columns=names)

    def __repr__(self) -> str:
        return f"<lockstep.Evaluation: {self.headline}>"


def evaluate(run: Run | program.PathLike, data: program.PathLike | None = None, *, settings: program.Settings | None = None,
             options: Sequence[str] = ()) -> Evaluation:
    """How good the network of `run` is: on its validation set, or on the folder or shards `data`."""
    words = ["eval", os.fspath(run), *(["--data", os.fspath(data)] if data else []), *program.settings_words(settings), *options]
    return Evaluation(program.ask(words))


def _image_paths(images: Any, folder: pathlib.Path) -> list[str]:
    """Paths as they are; anything with save(), as Pillow's images have, as a file."""
    if isinstance(images, (str, os.PathLike)) or hasattr(images, "save"):
        images = [images]
    paths = []
    for number, image in enumerate(images):
        if hasattr(image, "save"):
            file = folder / f"image-{number}.png"
            image.save(file)
            paths.append(str(file))
        else:
            paths.append(os.fspath(image))
    return paths


def predict(run: Run | program.PathLike, images: Any, *, top: int | None = None, settings: program.Settings | None = None,
            options: Sequence[str] = ()) -> pandas.DataFrame:
    """What the network of `run` says about `images`: paths, folders, images of Pillow, or several of them.

    A row for each answer: of a classifier `path`, `name`, `probability`, most probable first; of other tasks the records of the
    program. An image that cannot be read is a row with `error`.
    """
    import pandas
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        words = ["predict", os.fspath(run), *_image_paths(images, pathlib.Path(folder))]
        words += ["--top", str(top)] if top else []
        answer = program.ask([*words, *program.settings_words(settings), *options])
    return pandas.DataFrame([row for image in answer["images"] for row in _answer_rows(image)])


def _answer_rows(image: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each entry of a list of records (classes, objects, words), with what is said of the whole image; any other list
    (the rain of each minute) stays whole."""
    below = {key: value for key, value in image.items() if isinstance(value, list) and all(isinstance(row, dict) for row in value)}
    above = {key: value for key, value in image.items() if key not in below}
    return [{**above, **row} for value in below.values() for row in value] or [above]
