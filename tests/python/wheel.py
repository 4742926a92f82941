#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the source distribution to a user without root: wheel.py [--wheel FILE]

Builds the wheel, installs it into an empty environment in which the torch wheel is linked, and there plans, trains, records a
script, serves and executes the notebooks; then takes torch away, and puts one of another version in its place. Needs
scripts/deps.sh torch oracles python.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ORACLES = next((ROOT / ".deps/oracles/lib").glob("python3*/site-packages"))
TOOLS = next((ROOT / ".deps/python/lib").glob("python3*/site-packages"))
# torch with what it needs to be imported; of its own packages no file is copied.
OF_TORCH = re.compile(r"(torch|torchgen|functorch|triton|nvidia|torchvision|sympy|mpmath|networkx|jinja2|markupsafe|fsspec|filelock|"
                      r"typing_extensions|numpy|pillow|PIL|cuda)(\b|_|\.)", re.I)
SCRIPT = """
import torch, torchvision
model = torchvision.models.resnet18(num_classes=10).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    images, labels = torch.randn(8, 3, 64, 64, device="cuda"), torch.randint(0, 10, (8,), device="cuda")
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
"""
JOB = {"name": "small", "data": {"train": "set/train", "validate": "set/validate", "image_size": 32},
       "model": {"name": "smallcnn", "classes": 3}, "training": {"global_batch": 16, "epochs": 1}}
done = []


def passed(what, started):
    done.append(what)
    print(f"{time.monotonic() - started:6.1f} s  {what}", flush=True)


class Environment:
    """A virtual environment with no variables of ours, so that only what is installed is found."""

    def __init__(self, folder):
        self.folder, self.work = folder / "venv", folder / "work"
        subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
        self.work.mkdir()
        self.packages = next((self.folder / "lib").glob("python3*/site-packages"))
        kept = ("HOME", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS", "LOCKSTEP_BUSY_CORES", "LANG")
        self.variables = {name: os.environ[name] for name in kept if name in os.environ}
        self.variables["PATH"] = f"{self.folder}/bin:/usr/bin:/bin"

    def link_torch(self):
        for path in ORACLES.iterdir():
            if OF_TORCH.match(path.name) and not (self.packages / path.name).exists():
                (self.packages / path.name).symlink_to(path)

    def say(self, *words, exit_code=0, **more):
        ended = subprocess.run(words, cwd=self.work, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
        assert ended.returncode == exit_code, f"{' '.join(map(str, words))}: exit {ended.returncode}, expected {exit_code}\n{ended.stdout[-3000:]}"
        return ended.stdout


def copy_sources(folder):
    """What a user without the repository gets: the source distribution, unpacked."""
    command = "import sys; sys.path.insert(0, 'python/build'); import lockstep_build; lockstep_build.build_sdist(sys.argv[1])"
    folder.mkdir()
    subprocess.run([ROOT / ".deps/python/bin/python", "-c", command, folder], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    sources, = folder.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        archive.extractall(folder, filter="data")
    tree = folder / sources.name.removesuffix(".tar.gz")
    (tree / ".deps").symlink_to(ROOT / ".deps")
    return tree


def build_wheel(folder):
    started = time.monotonic()
    tree = copy_sources(folder / "sources")
    # By the path of the copy itself: then ccache has it from any other tree.
    variables = {**os.environ, "LOCKSTEP_TORCH": str(tree / ".deps/libtorch")}
    subprocess.run([ROOT / "scripts/wheel.sh", tree, folder / "dist"], check=True, env=variables)
    wheel, = (folder / "dist").glob("lockstep-*.whl")
    assert "py3-none-manylinux_2_34_x86_64" in wheel.name, f"{wheel.name}: the tag promises glibc 2.34"
    passed(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, built from the source distribution", started)
    return wheel


def check_paths(environment):
    """Nothing leads back to the folder that it was built in."""
    for path in [*(environment.packages / "lockstep/bin").iterdir(), *(environment.packages / "lockstep/lib").iterdir()]:
        said = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
        for found in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", said):
            wrong = [part for part in found.split(":") if not part.startswith("$ORIGIN")]
            assert not wrong, f"{path.name}: {wrong}"


def check_use(environment, say):
    started = time.monotonic()
    say("lockstep", "prep", "--synthesize", "shapes", "--count", "60", "--classes", "3", "--image-size", "32", "--to", "set")
    (environment.work / "job.json").write_text(json.dumps(JOB))
    assert "a100-80" in say("lockstep", "plan", "job.json", "--on", "a100-80,v100-16")
    assert "trained" in say("python", "-m", "lockstep", "train", "job.json", "--run", "run")
    assert "top-1" in say("lockstep", "eval", "run")
    passed("plans, trains, evaluates", started)
    started = time.monotonic()
    if shutil.which("mpirun"):
        say("lockstep", "train", "job.json", "--run", "two", "--ranks", "2")
        passed("trains on two ranks, with the site's MPI", started)
    started = time.monotonic()
    (environment.work / "train.py").write_text(SCRIPT)
    say("python", "-m", "lockstep.record", "train.py", "--to", "mine.rec")
    assert "a100-40" in say("lockstep", "plan", "--recording", "mine.rec", "--on", "a100-40", "--steps", "100")
    passed("records a script and plans the recording", started)


def check_serve(environment):
    started = time.monotonic()
    server = subprocess.Popen(["lockstep", "serve", "run", "--port", "0", "--no-token", "--for", "60 s"], cwd=environment.work,
                              env=environment.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = server.stdout.readline()
            assert line, f"serve ended: {said}"
            said += line
        image = next((environment.work / "set/validate").rglob("*.jpg")).read_bytes()
        with urllib.request.urlopen(urllib.request.Request(found[0] + "/predict", data=image), timeout=30) as answer:
            assert len(json.load(answer)["classes"]) == 3
    finally:
        server.terminate()
        server.wait()
    passed("serves", started)


def check_share(environment):
    for name in ("man/man1/lockstep-plan.1", "man/man5/lockstep-job.5", "bash-completion/completions/lockstep",
                 "zsh/site-functions/_lockstep", "fish/vendor_completions.d/lockstep.fish"):
        assert (environment.folder / "share" / name).exists(), name
    assert (environment.packages / "lockstep/py.typed").exists()


def check_torch(environment, say):
    """No torch, and a torch of another version: named, with the fix; what needs none works."""
    started = time.monotonic()
    torch = environment.packages / "torch"
    torch.unlink()
    said = say("lockstep", "plan", "job.json", "--on", "a100-80", exit_code=3)
    assert "no torch beside this wheel" in said and "python -m pip install 'torch==2.11.*'" in said, said
    assert "samples per optimizer step" in say("lockstep", "explain", "training.global_batch")
    torch.mkdir()
    for path in (ORACLES / "torch").iterdir():
        if path.name != "version.py":
            (torch / path.name).symlink_to(path)
    version = (ORACLES / "torch/version.py").read_text()
    (torch / "version.py").write_text(version.replace("2.11.0", "2.12.1"))
    said = say("lockstep", "train", "job.json", "--run", "other", exit_code=3)
    assert re.search(r"torch 2\.12\.1\S* in \S+torch/lib, but this wheel was built with 2\.11\.0", said), said
    assert "python -m pip install 'torch==2.11.*'" in said and not (environment.work / "other").exists()
    shutil.rmtree(torch)
    torch.symlink_to(ORACLES / "torch")
    passed("names a missing torch and one of another version", started)


def check_elsewhere(environment, say):
    """torch in another folder of the path, as a site's module or --system-site-packages gives it."""
    started = time.monotonic()
    (environment.packages / "torch").unlink()
    (environment.packages / "site.pth").write_text(f"{ORACLES}\n")
    assert "a100-80" in say("lockstep", "plan", "job.json", "--on", "a100-80")
    (environment.packages / "site.pth").unlink()
    (environment.packages / "torch").symlink_to(ORACLES / "torch")
    passed("finds torch elsewhere on the path", started)


def check_types():
    started = time.monotonic()
    subprocess.run([ROOT / ".deps/python/bin/mypy", "--config-file", "pyproject.toml", "-p", "lockstep"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    passed("mypy --strict finds nothing in the module", started)


def check_notebooks(environment):
    started = time.monotonic()
    (environment.packages / "tools.pth").write_text(f"{TOOLS}\n")
    environment.say("python", ROOT / "tests/python/notebooks.py")
    passed("executes the five notebooks", started)


def main():
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    with tempfile.TemporaryDirectory(dir=ROOT, prefix="build-clone-") as name:
        folder = pathlib.Path(name)
        wheel = pathlib.Path(sys.argv[2]).resolve() if sys.argv[1:2] == ["--wheel"] else build_wheel(folder)
        environment = Environment(folder)
        environment.link_torch()
        say = environment.say
        started = time.monotonic()
        say("python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel)
        assert "lockstep 0." in say("lockstep", "--version") and "get ready" in say("python", "-m", "lockstep", "--help")
        passed("installed into an empty environment", started)
        check_paths(environment)
        check_share(environment)
        check_use(environment, say)
        check_serve(environment)
        check_torch(environment, say)
        check_elsewhere(environment, say)
        check_notebooks(environment)
        check_types()
    print(f"wheel: {len(done)} passed, 0 failed")


if __name__ == "__main__":
    main()
