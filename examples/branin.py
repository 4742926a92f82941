# SPDX-License-Identifier: Apache-2.0
"""Branin's function of two numbers; its three minima are 0.397887."""
import math
import sys

x, y = map(float, sys.argv[1:])
print((y - 5.1 * x * x / (4 * math.pi**2) + 5 * x / math.pi - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)
