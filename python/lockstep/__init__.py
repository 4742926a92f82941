# SPDX-License-Identifier: Apache-2.0
"""Lockstep from Python: the program's own answers as Python objects.

plan, train, evaluate, predict and Run call the program and read what it writes; nothing is computed a second time here.
record and from_snapshot turn a PyTorch step of yours into a recording for plan. torch and pandas are imported when they
are first needed.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .program import BugError, LockstepError, MachineError, Stopped, UserError

if TYPE_CHECKING:
    from .planning import Advice, Plan, advise, plan
    from .recorder import record
    from .runs import Evaluation, Run, evaluate, predict
    from .snapshot import from_snapshot
    from .training import train

_HOME = {"Advice": "planning", "Evaluation": "runs", "Plan": "planning", "Run": "runs", "advise": "planning", "evaluate": "runs",
         "from_snapshot": "snapshot", "plan": "planning", "predict": "runs", "record": "recorder", "train": "training"}

__all__ = ["Advice", "BugError", "Evaluation", "LockstepError", "MachineError", "Plan", "Run", "Stopped", "UserError", "advise",
           "evaluate", "from_snapshot", "plan", "predict", "record", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lockstep' has no attribute '{name}'")
    found = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
