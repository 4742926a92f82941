#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What both recipes beside this file do inside the image, as root, with the source tree in the current folder: packages and
# torch, the program, then JupyterLab and the Python module. setup.sh [packages|program|jupyter...]
set -euo pipefail
site() { /opt/jupyter/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
for part in "${@:-packages program jupyter}"; do
  for one in $part; do
    case $one in
      packages)
        scripts/deps.sh build
        # The whole torch: what deps.sh keeps in .deps has no CUDA libraries. The program is linked to it where it lies.
        python3 -m venv /opt/jupyter
        /opt/jupyter/bin/pip install -q --no-compile "$(grep -o 'torch==[0-9.]*' scripts/deps.sh | head -n 1)" ;;
      program)
        rm -rf build  # a tree that was built elsewhere has it
        make install PREFIX=/opt/lockstep CMAKE_FLAGS="-DLOCKSTEP_TORCH=$(site)"
        rm -rf build ;;
      jupyter)
        /opt/jupyter/bin/pip install -q --no-compile jupyterlab pandas tqdm ipywidgets
        cp -r python/lockstep "$(site)/lockstep"
        /opt/lockstep/bin/lockstep examples /opt/lockstep/examples ;;
      *) echo "setup.sh: no part '$one'" >&2; exit 2 ;;
    esac
  done
done
