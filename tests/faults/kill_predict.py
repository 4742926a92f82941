#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `lockstep predict ... --to FILE.jsonl` at every call by which it changes the disk, then at seeded moments:
kill_predict.py [SECONDS] [SEED]

A classifier has half of the SECONDS; a Mask R-CNN with pictures and a list of columns has the other.
First one process works through a small collection again and again; disk_shim.c, preloaded, lets the N-th such call go
wrong: SIGKILL before it, SIGKILL in the middle of it or right behind it, ENOSPC, EIO; in a seeded order, until two thirds
of its time are over. Then rounds in the rest of it: each works through a larger collection through as many kills of all its
processes as fall into it, on one or two ranks. The same command must then finish it, and the result must have each image
once, with the record that it has in the result that nobody disturbed, apart from the time, and the same pictures. The seed
is printed.
"""
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from supervised import (FAULTS_OF_A_CALL, GONE, LOCKSTEP, build_shim, faults_at_calls, folder_for, members, rounds_until, seed_from, until,
                        verdict)


CLASSIFIER = {"name": "t", "data": {"train": "shapes/train", "image_size": 32}, "model": {"name": "linear"},
              "training": {"global_batch": 16, "steps": 1}}
DETECTOR = {"name": "t", "task": "instances", "data": {"train": "set/train", "image_size": [64, 96]},
            "model": {"name": "maskrcnn_resnet18_fpn", "width": 16},
            "instances": {"slots": 4, "min_size": 64, "max_size": 96, "mask_size": 32, "proposals": 32, "evaluated_proposals": 32,
                          "anchor_samples": 32, "roi_slots": 16, "detections": 8, "score_threshold": 0, "context": "delft.csv"},
            "training": {"global_batch": 4, "steps": 1, "threads": 1}}  # as many on one rank as on two: they decide last digits


def on_one_core():
    """Threads that draw make folders in whatever order: calls that are numbered need one."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@dataclasses.dataclass
class Collection:
    """A folder with a run, and the images `few` and `many`; what `predict` is told about them."""
    where: pathlib.Path
    words: tuple = ()

    def start(self, images, to, *words, **variables):
        return subprocess.Popen([LOCKSTEP, "predict", "run", images, "--to", str(self.where / f"{to}.jsonl"), *self.words, *words],
                                cwd=self.where, text=True, env=dict(os.environ, OMP_NUM_THREADS="1", **variables),
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                                preexec_fn=on_one_core if "LD_PRELOAD" in variables else None)

    def predict(self, *arguments, **variables):
        """Exit code and what it said."""
        process = self.start(*arguments, **variables)
        said = process.communicate(timeout=300)[1]
        return process.returncode, said

    def result(self, to):
        """All records but their times, in order; the checksums of the pictures."""
        rows = [json.loads(line) for line in (self.where / f"{to}.jsonl").read_text().splitlines()]
        for row in rows:
            del row["time"]
        files = self.where / f"{to}.files"
        drawn = {str(path.relative_to(files)): hashlib.sha256(path.read_bytes()).hexdigest()
                 for part in ("pictures", "thumbnails") for path in sorted((files / part).rglob("*.jpg"))}
        return rows, drawn

    def left_behind(self, to):
        return [path.name for path in self.where.glob(f"{to}.*")
                if path.name not in (f"{to}.jsonl", f"{to}.files") + ((f"{to}.html",) if "--pictures" in self.words else ())]

    def remove(self, to):
        shutil.rmtree(self.where / f"{to}.files", ignore_errors=True)
        for name in (f"{to}.jsonl", f"{to}.html", f"{to}.jsonl.draft"):
            (self.where / name).unlink(missing_ok=True)


def prepare(where, job, *commands):
    where.mkdir(exist_ok=True)
    (where / "job.json").write_text(json.dumps(job))
    for words in (*commands, ["train", "job.json", "--run", "run"]):
        subprocess.run([LOCKSTEP, *words], cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def set_few_aside(where, count):
    (where / "few").mkdir()
    for image in sorted((where / "many").rglob("*.jpg"))[:count]:
        shutil.copy(image, where / "few" / image.name)
    (where / "few" / "bad.jpg").write_text("no image")


def classifier(where):
    prepare(where, CLASSIFIER, ["prep", "--synthesize", "shapes", "--count", "900", "--classes", "2", "--image-size", "64", "--to", "shapes"])
    (where / "shapes" / "train").rename(where / "many")
    set_few_aside(where, 20)
    return Collection(where)


def detector(where):
    where.mkdir()
    (where / "delft.csv").write_text("disk,place=Delft,20\n")
    prepare(where, DETECTOR, ["prep", "--synthesize", "coco", "--count", "120", "--classes", "2", "--image-size", "48", "--to", "scenes"],
            ["prep", "scenes", "--to", "set"])
    (where / "scenes" / "train").rename(where / "many")
    set_few_aside(where, 20)
    names = sorted(path.name for path in (where / "many").iterdir())
    (where / "list.csv").write_text("path,place\n" + "".join(f"{name},{'Delft' if i % 2 else ''}\n" for i, name in enumerate(names)))
    return Collection(where, ("--pictures", "--columns", "list.csv"))


def one_fault(collection, shim, how, at, whole):
    """Returns what went wrong, as a text; empty: nothing."""
    to = f"found-{how}-{at}"
    code, said = collection.predict("few", to, LD_PRELOAD=str(shim), SHIM_UNDER="/found-", SHIM_HOW=how, SHIM_AT=str(at))
    if code not in ((-9,) if how in ("kill", "torn") else (0, 3)):
        return f"exit code {code}\n{said}"
    code, said = collection.predict("few", to)
    if code != 0:
        return f"did not go on, exit code {code}\n{said}"
    if collection.result(to) != whole:
        return "other records or pictures than those that nobody disturbed"
    left = collection.left_behind(to)
    collection.remove(to)
    return f"left behind: {left}" if left else ""


def every_call(collection, shim, pool, rng, end):
    """Returns the numbers of faults that passed and failed."""
    count = collection.where / "calls"
    code, said = collection.predict("few", "found-calls", LD_PRELOAD=str(shim), SHIM_UNDER="/found-", SHIM_COUNT=str(count))
    if code != 0:
        sys.exit(f"exit code {code}\n{said}")
    whole, calls = collection.result("found-calls"), count.read_text().split()
    cases = [(how, at) for at in range(len(calls)) for how in FAULTS_OF_A_CALL]
    rng.shuffle(cases)
    passed, failed = faults_at_calls(calls, pool, lambda how, at: one_fault(collection, shim, how, at, whole), cases, end)
    print(f"{passed + failed} of {len(cases)} faults at {len(calls)} calls", flush=True)
    return passed, failed


def one_round(collection, to, rng, length, whole):
    """Returns the number of kills, or a text that says what went wrong."""
    for kills in range(100):
        ranks = rng.choice((["--ranks", "2"], []))
        process = collection.start("many", to, *ranks)
        try:
            said = process.communicate(timeout=rng.uniform(0.3, 1.1) * length if kills < 12 else 120)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if not until(lambda: not members(process.pid), GONE):  # those that left the group are ended by their watchdogs
                return f"processes {members(process.pid)} are left"
            continue
        if process.returncode != 0:
            return f"exit code {process.returncode}\n{said}"
        return kills if collection.result(to) == whole else "other records or pictures than those that nobody disturbed"
    return "never came to its end"


def disturb(collection, shim, pool, rng, seconds):
    """Returns the numbers of what passed, what failed and the faults."""
    begin = time.monotonic()
    passed, failed = every_call(collection, shim, pool, rng, begin + seconds * 2 / 3)
    faults, end, begin = passed + failed, begin + seconds, time.monotonic()
    code, said = collection.predict("many", "whole")
    if code != 0:
        sys.exit(f"exit code {code}\n{said}")
    length, whole = time.monotonic() - begin, collection.result("whole")
    rounds, kills, wrong = rounds_until(end, lambda number: one_round(collection, f"round{number}", rng, length, whole))
    rows, drawn = whole
    print(f"{collection.where.name}: {rounds} rounds, {kills} kills, {len(rows)} images, each once, the same records and "
          f"{len(drawn)} pictures each time", flush=True)
    return passed + rounds, failed + wrong, faults + kills


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    rng = random.Random(seed_from(sys.argv, 2))
    with folder_for("predict") as where, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shim = build_shim(where)
        sums = [disturb(make(where / make.__name__), shim, pool, rng, seconds / 2) for make in (classifier, detector)]
    return verdict("kill_predict", *map(sum, zip(*sums)))


if __name__ == "__main__":
    sys.exit(main())
