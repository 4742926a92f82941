#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at every step of a 50-step run, the ranks in turn, under one supervisor: every_step.py [STEPS] [SEED]

A checkpoint follows every step. When step k is saved for the first time, a rank is killed at a seeded moment of the step
behind it; the supervisor starts the ranks again, without help. The weights must be those of the run that nobody disturbed,
to the bit: a lost or repeated sample would change them. Every step must have had its kill.
"""
import json
import pathlib
import random
import signal
import sys
import tempfile
import time

from supervised import Run, send, until

JOB = {
    "name": "every_step",
    "data": {"train": "synthetic", "samples": 96, "image_size": 64},
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 12, "optimizer": {"name": "sgd", "lr": 0.01, "momentum": 0.9}, "threads": 1},
    "checkpoint": {"every_epochs": 0.125, "keep": 2},  # 8 steps an epoch: after every step
}


class Killer:
    """Watches one supervised run and kills a rank in each step that is wanted."""

    def __init__(self, run, wanted, rng, step_seconds):
        self.run, self.wanted, self.rng, self.step_seconds = run, set(wanted), rng, step_seconds
        self.journal, self.read, self.saved = run.path / "journal.jsonl", 0, 0
        self.hit = set()

    def follow(self):
        """Reads what the journal has got since the last time; cheap, because it must be faster than a step."""
        try:
            with open(self.journal, "rb") as file:
                file.seek(self.read)
                lines = file.read().split(b"\n")
        except OSError:
            return
        self.read += sum(len(line) + 1 for line in lines[:-1])
        for line in lines[:-1]:
            if b'"event":"save"' in line:
                self.saved = json.loads(line)["step"]

    def kill_through(self):
        while self.wanted - self.hit and self.run.running():
            before = {beat["world"] for beat in self.run.beats().values()} if self.hit else set()
            fresh = lambda: {rank: beat for rank, beat in self.run.beats().items() if beat["world"] not in before}
            if not until(lambda: len(fresh()) == self.run.ranks or not self.run.running(), 120) or not self.run.running():
                return
            pids = [beat["pid"] for beat in fresh().values()]
            while self.run.running():
                self.follow()
                if self.saved in self.wanted and self.saved not in self.hit:
                    break
                time.sleep(0.001)
            if not self.run.running():
                return
            time.sleep(self.rng.uniform(0, 0.5) * self.step_seconds)
            if send(self.rng.choice(pids), signal.SIGKILL):
                self.follow()  # a step that was saved meanwhile is the one that was hit
                self.hit.add(self.saved)


def one_pass(folder, name, wanted, rng, step_seconds, expected):
    """(steps hit, restarts, what went wrong)"""
    run = Run(folder, name, 2, ["--restarts", "1000"]).start()
    try:
        killer = Killer(run, wanted, rng, step_seconds)
        killer.kill_through()
        code = run.wait(300)
        wrong = f"exit code {code}" if code != 0 else "" if run.digest() == expected else "other weights"
        return killer.hit, len(run.events("restart")), wrong and f"{name}: {wrong}\n{run.tail()}"
    finally:
        run.end()


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="lockstep-every-step-") as name:
        folder = pathlib.Path(name)
        JOB["training"]["steps"] = steps
        (folder / "job.json").write_text(json.dumps(JOB))
        straight = Run(folder, "straight", 2).start()
        if straight.wait(300) != 0:
            sys.exit(straight.tail())
        times = [row["t"] for row in straight.events("save")]
        step_seconds = (times[-1] - times[0]) / (len(times) - 1)
        begin, missed, restarts, wrong = time.monotonic(), set(range(steps)), 0, ""
        for number in range(4):  # a step that ended before the kill came is tried again in another run
            hit, more, wrong = one_pass(folder, f"killed{number}", missed, rng, step_seconds, straight.digest())
            missed, restarts = missed - hit, restarts + more
            if wrong or not missed:
                break
        seconds = time.monotonic() - begin
        print(f"{restarts} kills and restarts in {seconds:.0f} s ({seconds / max(1, restarts):.1f} s each) in {number + 1} runs, "
              f"a step takes {step_seconds * 1000:.0f} ms")
        if missed:
            print(f"steps without a kill: {sorted(missed)}")
        print(wrong, end="")
        good = not wrong and not missed and restarts >= steps
        print(f"every_step: {int(good)} passed, {int(not good)} failed")
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
