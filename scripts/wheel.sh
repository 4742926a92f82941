#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel for other machines, as `make wheel` builds it: wheel.sh TREE FOLDER; needs scripts/deps.sh python.
# The image libraries, OpenSSL and liburing travel in it (auditwheel); torch, CUDA, MPI and HDF5 are the site's own. The
# tag says which glibc it needs: manylinux_2_34 is RHEL 9, Debian 12, Ubuntu 22.04 and later.
set -euo pipefail
tools=$(cd "$(dirname "$0")/.." && pwd)/.deps/python
tree=$(realpath "${1:?usage: wheel.sh TREE FOLDER}")
mkdir -p "${2:?usage: wheel.sh TREE FOLDER}"
folder=$(realpath "$2")
export PATH="$tools/bin:$PATH" CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}"
rm -rf "$folder/local" && mkdir "$folder/local"
# Without isolation: the build tools are those of deps.sh, and nothing is fetched.
python -m pip wheel -q --no-build-isolation --no-deps -w "$folder/local" "$tree"
excluded=()
for library in 'libtorch*' 'libc10*' 'libcu*' 'libnv*' 'libnccl*' 'libmpi*' 'libopen-*' 'libhdf5*'; do
  excluded+=(--exclude "$library")
done
python -m auditwheel -v repair "${excluded[@]}" -w "$folder" "$folder"/local/lockstep-*.whl > "$folder/auditwheel.log" 2>&1 \
  || { tail -n 40 "$folder/auditwheel.log"; exit 1; }
ls "$folder"/lockstep-*manylinux*.whl
