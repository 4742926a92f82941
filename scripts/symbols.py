#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the newest GLIBC and GLIBCXX symbols our files need and fails above the floor: symbols.py BUILD.

The floor is Debian 12: glibc 2.36 and the C++ library of GCC 12. What is built there runs there and on anything newer.
"""
import pathlib
import re
import subprocess
import sys

FLOOR = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30)}


def needs(path):
    table = subprocess.run(["objdump", "-T", str(path)], check=True, capture_output=True, text=True).stdout
    for line in table.splitlines():
        if "*UND*" in line:
            for family, version in re.findall(r"\b(GLIBC|GLIBCXX)_([\d.]+)", line):
                yield family, tuple(map(int, version.split("."))), line.split()[-1]


def main():
    build = pathlib.Path(sys.argv[1])
    files = [build / "bin/lockstep", *sorted((build / "lib").glob("liblockstep_*.so"))]
    failed = 0
    for path in files:
        highest = {}
        for family, version, symbol in needs(path):
            if version > highest.get(family, ((), ""))[0]:
                highest[family] = (version, symbol)
        for family, (version, symbol) in sorted(highest.items()):
            above = version > FLOOR[family]
            failed += above
            print(f"{path.name}: {family}_{'.'.join(map(str, version))} ({symbol}){' ABOVE THE FLOOR' if above else ''}")
    print(f"symbols: {len(files)} files, {failed} above the floor "
          + ", ".join(f"{family}_{'.'.join(map(str, version))}" for family, version in FLOOR.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
