#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recipes for containers, Spack and modules, judged by those who read them: packaging.py, with scripts/deps.sh python and shellcheck.

Nothing is built here. hadolint, shellcheck and spython read the container's recipes, Tcl executes the module file; what a recipe
repeats of the tree (versions, parts of a script, settings of CMake) is as the tree has it.
"""
import ast
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / ".deps/python/bin"
CONTAINER = ROOT / "packaging/container"
VERSION = re.search(r"LOCKSTEP_VERSION \"([\d.]+)\"", (ROOT / "lockstep/version.h").read_text()).group(1)
MODULE = """
proc module-whatis {args} {}
proc conflict {args} {}
proc prepend-path {name value} { puts "$name=$value" }
proc append-path {name value} {}
proc setenv {name value} { puts "$name=$value" }
source [lindex $argv 0]
"""
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print(f"WRONG {what}", flush=True)


def said(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stdout}"


def check_dockerfile():
    lint = said(TOOLS / "hadolint", "--no-color", "--failure-threshold", "warning", CONTAINER / "Dockerfile")
    expect(not lint.startswith("exit"), f"hadolint: {lint}")
    lint = said("shellcheck", CONTAINER / "setup.sh")
    expect(not lint, f"shellcheck: {lint}")
    parts = set(re.findall(r"^ {6}(\w+)\)", (CONTAINER / "setup.sh").read_text(), re.M))
    for recipe in ("Dockerfile", "lockstep.def"):
        run = {part for line in re.findall(r"setup\.sh ([\w ]+)", (CONTAINER / recipe).read_text()) for part in line.split()}
        expect(run == parts, f"{recipe} runs {sorted(run)}, setup.sh has {sorted(parts)}")


def check_apptainer(folder):
    """As apptainer fills it in; spython knows no arguments, and takes a comment that speaks of the bootstrap for one."""
    recipe = (CONTAINER / "lockstep.def").read_text()
    values = dict(re.findall(r"^    (\w+)=(\S+)$", recipe.split("%arguments")[1].split("\n%")[0], re.M))
    filled = re.sub(r"%arguments\n(    .*\n)+", "", re.sub(r"\{\{ (\w+) \}\}", lambda name: values[name[1]], recipe))
    (folder / "lockstep.def").write_text(re.sub(r"^#.*\n", "", filled, flags=re.M))
    docker = said(TOOLS / "spython", "recipe", "--parser", "singularity", folder / "lockstep.def")
    for line in ("FROM debian:12", "setup.sh packages program jupyter", "lockstep plan /opt/lockstep/examples"):
        expect(line in docker, f"spython: no '{line}' in: {docker[-500:]}")
    post = recipe.split("\n%post\n")[1].split("\n%")[0]
    expect(post.rstrip().endswith("rm -rf /opt/source"), "lockstep.def: the source tree, with .git and .deps, stays in the image")
    job = re.search(r"lockstep plan /opt/lockstep/(\S+)", recipe).group(1)
    expect((ROOT / job).exists(), f"lockstep.def: its test plans {job}, which is not there")


def check_spack():
    text = (ROOT / "packaging/spack/packages/lockstep/package.py").read_text()
    calls = [(call.func.id, [argument.value for argument in call.args if isinstance(argument, ast.Constant)])
             for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)]
    needs = [name for function, names in calls if function == "depends_on" for name in names[:1]]
    torch = re.search(r"torch==(\d+\.\d+)", (ROOT / "scripts/deps.sh").read_text()).group(1)
    cmake = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    expect(("version", [VERSION]) in calls, f"Spack: no version {VERSION}")
    expect(f"cmake@{cmake}:" in needs, f"Spack: no cmake@{cmake}: among {needs}")
    expect({f"py-torch@{torch} +cuda", f"py-torch@{torch} ~cuda"} <= set(needs), f"Spack: no py-torch@{torch} among {needs}")
    settings = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
    for name in re.findall(r'"(LOCKSTEP_\w+)"', text):
        expect(name in settings, f"Spack: CMake has no {name}")


def check_module(folder):
    module = (ROOT / "packaging/modules/lockstep.tcl.in").read_text().replace("@prefix@", "/opt/l").replace("@LOCKSTEP_VERSION@", VERSION)
    (folder / "module").write_text(module)
    (folder / "run.tcl").write_text(MODULE)
    told = said("tclsh", folder / "run.tcl", folder / "module").split()
    expect(told == ["PATH=/opt/l/bin", "MANPATH=/opt/l/share/man", "LOCKSTEP_ROOT=/opt/l"], f"module file: {told}")


def main():
    missing = [tool for tool in ("shellcheck", "tclsh") if not shutil.which(tool)] + [t for t in ("hadolint", "spython") if not (TOOLS / t).exists()]
    if missing:
        sys.exit(f"packaging.py: missing: {' '.join(missing)} (scripts/deps.sh test python)")
    with tempfile.TemporaryDirectory() as name:
        check_dockerfile()
        check_apptainer(pathlib.Path(name))
        check_spack()
        check_module(pathlib.Path(name))
    print(f"packaging: hadolint, shellcheck, spython, Tcl; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
