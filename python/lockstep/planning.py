# SPDX-License-Identifier: Apache-2.0
"""lockstep.plan: what a job will need, before the queue."""
from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import pages, program

if TYPE_CHECKING:
    import pandas


def _shown(page: str) -> str:
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        file = pathlib.Path(folder) / "page.html"
        file.write_text(page)
        return pages.frame(file)


class Advice:
    """An answer of `lockstep plan --advise`: its `document`, and the page."""

    def __init__(self, what: str, document: Any, page: str) -> None:
        self.what, self.document, self.page = what, document, page

    def __repr__(self) -> str:
        return f"<lockstep.Advice: {self.what}>"

    def _repr_html_(self) -> str:
        return _shown(self.page)


class Plan:
    """The program's plan.json (docs/formats/plan.md) and its page."""

    def __init__(self, document: Mapping[str, Any], page: str) -> None:
        self.document, self._page = dict(document), page

    @property
    def headline(self) -> str:
        return str(self.document["headline"])

    @property
    def fits(self) -> bool:
        """True when some option fits and ends in time."""
        return any(option["feasible"] for option in self.document["options"])

    @property
    def options(self) -> pandas.DataFrame:
        """A row for each option: the figures that people compare. What is not known (a GPU's speed, a price, the length of a run
        without a number of samples) is missing."""
        import pandas
        return pandas.DataFrame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for option in self.document["options"]:
            memory, step, cost = option["memory"], option.get("step_seconds") or {}, option.get("cost") or {}
            seconds = option.get("total_seconds")
            rows.append({"option": option["title"], "fits": option["fits"], "gpus": option["gpus"],
                         "memory_gb": memory["total_bytes"] / 1e9, "of_gb": memory["capacity_bytes"] / 1e9,
                         "step_s": step.get("value"), "step_low_s": step.get("low"), "step_high_s": step.get("high"),
                         "run_h": None if seconds is None else seconds / 3600, "jobs": option.get("jobs"),
                         "cost": cost.get("amount"), "currency": cost.get("currency", ""), "why": "; ".join(option["why"])})
        return rows

    def save(self, path: program.PathLike) -> None:
        """For `train(job, plan=...)`, which holds the run to it."""
        import json
        pathlib.Path(path).write_text(json.dumps(self.document))

    def __repr__(self) -> str:
        return f"<lockstep.Plan: {self.headline}>"

    def _repr_html_(self) -> str:
        return _shown(self._page)


def plan(job: program.Job | None = None, on: Sequence[str] | str = "all", *, gpus: Sequence[int] | None = None,
         recording: program.PathLike | None = None, settings: program.Settings | None = None,
         assume: Mapping[str, Any] | None = None, options: Sequence[str] = ()) -> Plan:
    """What `job` needs on each of the machines `on`; of a recorded step: recording="mine.rec".

    `settings` are --set, `assume` --assume; further words of the command go into `options`: ["--steps", "10000"]. A plan on which
    nothing fits is a plan, too: its `fits` is False.
    """
    if (job is None) == (recording is None):
        raise program.UserError("plan takes a job, or a recording", "lockstep.plan(\"job.json\", on=[\"a100-80\"])", 2)
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        page = pathlib.Path(folder) / "plan.html"
        words = ["--on", on if isinstance(on, str) else ",".join(on), "--report", str(page), *program.settings_words(settings)]
        words += ["--gpus", ",".join(map(str, gpus))] if gpus else []
        for key, value in (assume or {}).items():
            words += ["--assume", f"{key}={value}"]
        if recording is not None:
            document = program.ask(["plan", "--recording", str(recording), *words, *options], accept=(0, 3))
        else:
            assert job is not None
            with program.job_file(job) as file:
                document = program.ask(["plan", file, *words, *options], accept=(0, 3))
        return Plan(document, page.read_text())


def advise(what: str, document: program.PathLike | None = None, *, options: Sequence[str] = ()) -> Advice:
    """An answer instead of a table: "apply" (a project), "table" (measured tables), "cpu-or-gpu" and "rent" (a job), "buy".

    Further words of the command go into `options`: advise("buy", options=["--budget", "9800GBP", "--jobs", "job.json"]).
    """
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        page = pathlib.Path(folder) / "page.html"
        words = ["plan", *([str(document)] if document is not None else []), "--advise", what, "--report", str(page), *options]
        return Advice(what, program.ask(words, accept=(0, 3)), page.read_text())
