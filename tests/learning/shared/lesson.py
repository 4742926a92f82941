# SPDX-License-Identifier: Apache-2.0
"""What the tests of learning share: the program, and the way from a drawn set to the figures of a trained network."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def program(build=None):
    """Calls bin/lockstep of a build folder and gives its standard output; when it fails, the test ends with all it said."""
    file = pathlib.Path(build or os.environ.get("LOCKSTEP_BUILD", ROOT / "build")).resolve() / "bin/lockstep"

    def lockstep(*words, **options):
        done = subprocess.run([str(file), *words], capture_output=True, text=True, **options)
        if done.returncode != 0:
            sys.exit(f"lockstep {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout
    lockstep.file = str(file)
    return lockstep


def learn_scenes(lockstep, job, *drawing):
    """Draws scenes (the words behind `prep --synthesize`), prepares them as "set", trains and evaluates: what eval says."""
    with tempfile.TemporaryDirectory(prefix=f"lockstep-{job['task']}-") as folder:
        lockstep("prep", "--synthesize", *drawing, "--to", "scenes", cwd=folder)
        lockstep("prep", "scenes", "--to", "set", cwd=folder)
        pathlib.Path(folder, "job.json").write_text(json.dumps(job))
        print(lockstep("train", "job.json", "--run", "run", cwd=folder))
        print(lockstep("eval", "run", "--json", "eval.json", cwd=folder))
        return json.loads(pathlib.Path(folder, "eval.json").read_text())
