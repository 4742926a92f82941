#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""planned.py PLAN.json RUN: the plan has as many parameters as the run's weights, and each of its options counts bytes of activations."""
import json
import math
import pathlib
import struct
import sys

plan, weights = json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2], "weights.safetensors").read_bytes()
tensors = json.loads(weights[8:8 + struct.unpack("<Q", weights[:8])[0]])
trained = sum(math.prod(one["shape"]) for name, one in tensors.items() if name != "__metadata__" and "running_" not in name)
activations = [option["memory"]["by_class"].get("activations", 0) for option in plan["options"]]
if plan["parameters"] != trained or not activations or min(activations) <= 0:
    sys.exit(f"planned {plan['parameters']} parameters, trained {trained}; activations of the options {activations}")
print(f"planned {trained} parameters, as trained")
