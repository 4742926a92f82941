# SPDX-License-Identifier: Apache-2.0
"""The logistic map with a damping: what becomes of it after a while?"""
import math
import sys

for line in sys.stdin:  # it stays alive: a line of values in, a label out
    a, b = map(float, line.split())
    x = 0.3
    trace = []
    for step in range(300):
        x = a * x * (1 - x) * math.exp(-b * x)
        if step >= 236:
            trace.append(round(x, 4))
    distinct = len(set(trace))
    print("dies" if x < 1e-3 else "rests" if distinct == 1 else "swings" if distinct <= 4 else "chaos", flush=True)
