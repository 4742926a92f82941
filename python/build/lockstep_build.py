# SPDX-License-Identifier: Apache-2.0
"""The build backend of pyproject.toml: scikit-build-core, told where torch is.

torch is looked for in this order: the folder $LOCKSTEP_TORCH, the environment that the wheel is built for, .deps/libtorch of the
source tree (scripts/deps.sh torch). Only where none of them has it does pip fetch it for the build: 3 GB and more.
"""
import os
import pathlib
import re
import shlex
import sys
import sysconfig

from scikit_build_core.build import *  # noqa: F403  (every other hook is theirs)
from scikit_build_core import build as theirs

WANTED = "2.11"
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def version_of(folder):
    file = pathlib.Path(folder) / "torch/version.py"
    found = re.search(r"^__version__ = ['\"]([^'\"]+)", file.read_text(), re.M) if file.is_file() else None
    return found.group(1) if found else ""


def torch_folder():
    """The folder that holds torch/, or None."""
    given = os.environ.get("LOCKSTEP_TORCH")
    # pip's isolated build has the environment's own paths still in sysconfig, though no longer in sys.path.
    paths = [given] if given else [*(sysconfig.get_path(name) for name in ("purelib", "platlib")), ROOT / ".deps/libtorch", *sys.path]
    found = {str(path): version_of(path) for path in paths if path and (pathlib.Path(path) / "torch/lib/libtorch_cpu.so").exists()}
    for path, version in found.items():
        if version.startswith(WANTED + "."):
            return path
    if given:
        sys.exit(f"lockstep: LOCKSTEP_TORCH={given} holds torch {found.get(str(given)) or 'nowhere'}\n"
                 f"  fix: a folder that holds torch/ of {WANTED}")
    return None


def get_requires_for_build_wheel(config_settings=None):
    needed = theirs.get_requires_for_build_wheel(config_settings)
    return needed if torch_folder() else [*needed, f"torch=={WANTED}.0"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = torch_folder()
    if folder is None:
        sys.exit(f"lockstep: no torch {WANTED} to build against\n  fix: python -m pip install 'torch=={WANTED}.*'")
    print(f"lockstep: built with torch {version_of(folder)} in {folder}", flush=True)
    # As CMake itself would choose, not as this Python was compiled: with another name ccache compiles everything again.
    os.environ.setdefault("CC", "cc")
    os.environ.setdefault("CXX", "c++")
    # They take it apart as a shell would.
    os.environ["CMAKE_ARGS"] = f"{os.environ.get('CMAKE_ARGS', '')} {shlex.quote(f'-DLOCKSTEP_TORCH={folder}')}".strip()
    return theirs.build_wheel(wheel_directory, config_settings, metadata_directory)
