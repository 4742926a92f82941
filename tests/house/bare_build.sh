#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A login node without root: `make install PREFIX=...` with none of libjpeg, libpng, libwebp, libtiff, OpenSSL, MPI
# and libtorch.
# The doors are left out by name, nothing is installed by a package manager, and what needs none of them works.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_LIBDIR=$work/absent
# A package manager that is called by mistake leaves a mark.
mkdir "$work/path"
for name in apt-get apt pip pip3; do
  printf '#!/bin/sh\necho "$0 $*" >> %s/called\nexit 1\n' "$work" > "$work/path/$name"
  chmod +x "$work/path/$name"
done
PATH="$work/path:$PATH" make --no-print-directory install BUILD="$work/build" PREFIX="$work/prefix" \
  CMAKE_FLAGS="-DLOCKSTEP_TORCH=$work/absent -DMPI_CXX_WORKS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON" > "$work/log" 2>&1 \
  || { tail -40 "$work/log"; exit 1; }

says() { grep -q -- "$2" "$1" || { echo "not said: $2"; cat "$1"; exit 1; }; }
says "$work/log" "libjpeg62-turbo-dev"
says "$work/log" "libpng-dev"
says "$work/log" "libwebp-dev"
says "$work/log" "libtiff-dev"
says "$work/log" "libboost1.81-dev"
says "$work/log" "libopenmpi-dev"
says "$work/log" "libtorch not found"
[ ! -e "$work/called" ] || { echo "called: $(cat "$work/called")"; exit 1; }

# An empty entry of a search path is the current folder.
if readelf -d "$work"/prefix/bin/* "$work"/prefix/lib/*.so | grep -E '(RPATH|RUNPATH).*(\[:|::|:\]|\[\])'; then exit 1; fi

# What shells, man and module systems read.
share=$work/prefix/share
man --warnings -l "$share/man/man1/lockstep.1" "$share/man/man5/lockstep-job.5" > "$work/out.man" 2> "$work/err.man" || { cat "$work/err.man"; exit 1; }
bash -n "$share/bash-completion/completions/lockstep"
version=$(sed -n 's/^#define LOCKSTEP_VERSION "\(.*\)"$/\1/p' lockstep/version.h)
says "$share/modulefiles/lockstep/$version.lua" "$work/prefix"
says "$share/modulefiles-tcl/lockstep/$version" "$work/prefix"
if [ -e /usr/share/lmod/lmod/libexec/lmod ]; then
  for kind in modulefiles modulefiles-tcl; do
    MODULEPATH=$share/$kind /usr/share/lmod/lmod/libexec/lmod bash load lockstep > "$work/loaded"
    says "$work/loaded" "$work/prefix/bin"
  done
fi

lockstep=$work/prefix/bin/lockstep
cd "$work"
"$lockstep" --version
"$lockstep" explain training.global_batch > out && says out "samples per optimizer step"
"$lockstep" doctor > out
code=0
"$lockstep" train missing.json > out 2>&1 || code=$?
[ $code -eq 3 ] || { echo "train without libtorch: exit $code, expected 3"; cat out; exit 1; }
says out "liblockstep_torch.so"
echo "bare_build: 1 passed, 0 failed"
