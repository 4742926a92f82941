#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names each missing build tool with the Debian package that has it. Installs nothing. Libraries are CMake's to find:
# a missing one leaves its door out, by name.
missing=0
need() {  # need COMMAND PACKAGE
  command -v "$1" >/dev/null && return
  echo "missing: $1 (Debian package: $2)" >&2
  missing=1
}
need g++ g++
need cmake cmake
need ninja ninja-build
need pkg-config pkg-config
need python3 python3
[ $missing -eq 0 ] || { echo "fix: as root, 'make deps'; without root, load your site's modules or install them under PREFIX" >&2; exit 3; }
