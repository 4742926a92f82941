#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: run
"""TensorBoard's own reader reads our event files: every scalar, step and value."""
import math
import os
import pathlib
import subprocess
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, SCALARS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve()

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([BUILD / "bin" / "events_probe", folder], check=True)
    reader = EventAccumulator(folder, size_guidance={SCALARS: 0})
    reader.Reload()
    assert sorted(reader.Tags()["scalars"]) == sorted(["train/loss", "validate/top1", "caf\u00e9"]), reader.Tags()
    loss = reader.Scalars("train/loss")
    assert [point.step for point in loss] == list(range(1, 1001))
    assert all(math.isclose(point.value, math.exp(-0.001 * point.step), rel_tol=1e-6) for point in loss)
    assert reader.Scalars("validate/top1")[0].step == 1 << 40
    assert math.isclose(reader.Scalars("caf\u00e9")[0].value, -1e30, rel_tol=1e-6)
print("tensorboard_events: 1002 scalars read back by TensorBoard's EventAccumulator")
