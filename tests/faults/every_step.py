#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at every step of a run, several ways: every_step.py [STEPS] [SEED] [WAY...]

supervised  two ranks; one of them is killed, the supervisor starts both again, without help.
pieces      likewise with training.zero 3: every rank has a piece of the weights, and its history is of that.
virtual     supervisor, mpirun and ranks are killed together; the run goes on with 4, then 2, then 3 ranks, then 4 again.
            training.virtual_ranks: the bits of an undisturbed run on one rank.
plain       likewise without virtual ranks: the weights of an undisturbed run within 1e-6.

Without a WAY these four, 50 steps each. Detectors go the same ways by name, `fastbox` and `maskrcnn` as supervised, with
`-pieces` as pieces, with `-virtual` as virtual; `detectors` stands for all six.

A checkpoint follows every step. When step k is saved for the first time, the kill comes at a seeded moment of the step
behind it. Every step must have had its kill: what ended before its kill came is tried in another run, in which no later
checkpoint gets its name before that. The SHA-256 of the weights and of all state must be that of the run that
nobody disturbed, and what every rank wrote down (train --history) shows that each step took the samples of that run,
none lost and none repeated.
"""
import array
import collections
import itertools
import json
import random
import signal
import sys
import time

import check_history
from supervised import Run, build_hold, folder_for, process, seed_from, send, until, verdict, watching_closely

JOB = {
    "name": "every_step",
    "data": {"train": "synthetic", "samples": 96, "image_size": 64, "threads": 1},
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 12, "optimizer": {"name": "sgd", "lr": 0.01, "momentum": 0.9}, "threads": 1},
    "checkpoint": {"every_epochs": 0.125, "keep": 2},  # 8 steps an epoch: after every step
}
MLP = {"name": "mlp", "classes": 3}  # no batch norm: its statistics would be those of a rank
TOLERANCE = 1e-6  # of a weight, where ranks add in another order


class Way:
    """How a run is killed and goes on, and what must come out."""

    def __init__(self, ranks, same_bits, changes=None, training=()):
        self.ranks, self.same_bits = ranks, same_bits
        changes = changes or {}
        self.job = JOB | changes | {"data": JOB["data"] | changes.get("data", {}), "training": JOB["training"] | dict(training)}
        self.straight_ranks = ranks[0] if len(ranks) == 1 else 1


DETECTORS = {
    "fastbox": {"task": "detect", "model": {"name": "fastbox_resnet18", "width": 8, "classes": 2},
                "data": {"image_size": [64, 96]}},
    "maskrcnn": {"task": "instances", "model": {"name": "maskrcnn_resnet18_fpn", "width": 8, "classes": 3},
                 "data": {"image_size": [64, 64]},
                 "instances": {"slots": 4, "min_size": 64, "max_size": 64, "mask_size": 28, "proposals": 32,
                               "evaluated_proposals": 16, "anchor_samples": 32, "roi_slots": 16, "detections": 8}},
}
WAYS = {
    "supervised": Way((2,), same_bits=True),
    "virtual": Way((4, 2, 3), same_bits=True, training={"virtual_ranks": 4}),
    "pieces": Way((2,), same_bits=True, training={"zero": 3}),
    "plain": Way((4, 2, 3), same_bits=False, changes={"model": MLP}),
}
HOUSE = list(WAYS)  # of a classifier
for detector, its_job in DETECTORS.items():
    WAYS[detector] = Way((2,), same_bits=True, changes=its_job)
    WAYS[f"{detector}-pieces"] = Way((2,), same_bits=True, changes=its_job, training={"zero": 3})
    WAYS[f"{detector}-virtual"] = Way((4, 2, 3), same_bits=True, changes=its_job, training={"virtual_ranks": 4})


def ways_of(words):
    detectors = [name for name in WAYS if name not in HOUSE]
    return [name for word in words for name in (detectors if word == "detectors" else [word])] or HOUSE


class Killer:
    """Watches one run and kills it in each step that is wanted."""

    def __init__(self, run, wanted, rng, step_seconds, ranks, holds):
        self.run, self.wanted, self.rng, self.step_seconds, self.holds = run, set(wanted), rng, step_seconds, holds
        self.ranks = itertools.cycle(ranks[1:] + ranks[:1]) if len(ranks) > 1 else None
        self.journal, self.read, self.begun, self.saved = run.path / "journal.jsonl", 0, False, 0
        self.hit, self.kills, self.dead_worlds = set(), 0, set()

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
            self.begun = self.begun or b'"event":"start"' in line
            # A rank that was killed between a checkpoint and its line is followed by one that goes on from there.
            if b'"event":"save"' in line or b'"event":"resume"' in line:
                self.saved = json.loads(line)["step"]

    def living(self):
        """Heartbeats of the ranks that were started since the last kill."""
        heartbeats = self.run.heartbeats()
        return [heartbeat for heartbeat in heartbeats.values() if heartbeat["world"] not in self.dead_worlds]

    def await_ranks(self):
        """False when the run has ended. Killed all together, they need not be waited for: nothing old is left."""
        if self.ranks is None:
            until(lambda: len(self.living()) == self.run.ranks or not self.run.running(), 120)
        return self.run.running()

    def hold(self):
        """It waits for the kill behind the last step that wants one, since a rank that is about to end cannot be killed; with
        `holds` behind each of them."""
        ahead = [step for step in self.wanted - self.hit if step >= self.saved]
        if ahead:
            self.run.hold(min(ahead) if self.holds else max(ahead))
        else:
            self.run.let_go()

    def await_step(self):
        """False when the run has ended before a step that is wanted."""
        while self.run.running():
            self.follow()
            if self.begun and self.saved in self.wanted and self.saved not in self.hit:
                return True
            time.sleep(0.001)
        return False

    def strike(self):
        """True when something was there to be killed."""
        time.sleep(self.rng.uniform(0, 0.5) * self.step_seconds)
        if self.ranks is not None:
            alive, heartbeats = self.run.running(), self.run.heartbeats()
            world = heartbeats.get(0, {}).get("world")
            for heartbeat in heartbeats.values():  # at once: to look for the others takes longer than a step
                if heartbeat["world"] == world:
                    send(heartbeat["pid"], signal.SIGKILL)
            self.run.kill()
            return alive
        victims = self.living()
        victim = self.rng.choice(victims)["pid"] if victims else None
        if victim is None or not process(victim) or not send(victim, signal.SIGKILL):
            return False
        self.dead_worlds = {heartbeat["world"] for heartbeat in victims}
        return True

    def kill_through(self):
        while self.wanted - self.hit and self.await_ranks():
            self.hold()
            with watching_closely():
                struck = self.await_step() and self.strike()
            if struck:
                self.kills += 1
                self.follow()  # a step that was saved meanwhile is the one that was hit
                self.hit.add(self.saved)
                if self.ranks is not None:
                    self.run.start(next(self.ranks))
        self.run.let_go()


def weights(run):
    content = (run.path / "weights.safetensors").read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    kinds = {row["dtype"] for name, row in header.items() if name != "__metadata__"}
    if kinds != {"F32"}:
        sys.exit(f"{run.path}: weights of {kinds}, F32 is expected")
    return array.array("f", content[begin:])


def check(run, straight, way, kills):
    """What is wrong with a run that has come to its end, as a list of texts."""
    if way.same_bits:
        wrong = [] if run.digest() == straight.digest() else ["other weights"]
        wrong += [] if run.ended()["state_sha256"] == straight.ended()["state_sha256"] else ["other state"]
    else:
        ours, theirs = weights(run), weights(straight)
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        print(f"  largest difference of a weight: {worst:.1e} (at most {TOLERANCE:.0e})")
        wrong = [] if len(ours) == len(theirs) and worst <= TOLERANCE else ["other weights"]
    wrong += check_history.check(run.path, straight.path, way.same_bits)[0]
    ranks = collections.Counter(check_history.effective_steps(run.path)[3])
    if kills >= len(way.ranks) and set(ranks) != set(way.ranks):
        wrong.append(f"not on {way.ranks} ranks")
    if len(way.ranks) == 1 and len(run.events("restart")) < kills:
        wrong.append(f"{len(run.events('restart'))} restarts after {kills} kills")
    print(f"  starts by number of ranks: {dict(ranks)}; of weights, state, samples lost or repeated wrong: {len(wrong)}")
    return wrong


def one_pass(folder, name, wanted, rng, step_seconds, straight, way, holds):
    """(steps hit, kills, what went wrong)"""
    words = ["--history"] + (["--restarts", "1000"] if len(way.ranks) == 1 else [])
    run = Run(folder, name, way.ranks[0], words, straight.job, preload=folder / "hold.so")
    killer = Killer(run, wanted, rng, step_seconds, way.ranks, holds)
    killer.hold()
    run.start()
    try:
        killer.kill_through()
        code = run.wait(300)
        wrong = [f"exit code {code}"] if code != 0 else check(run, straight, way, killer.kills)
        return killer.hit, killer.kills, f"{name}: {'; '.join(wrong[:10])}\n{run.tail()}\n" if wrong else ""
    finally:
        run.end()


def try_way(folder, name, steps, rng):
    """(whether all is well, kills)"""
    way, begin = WAYS[name], time.monotonic()
    job = f"{name}.json"
    (folder / job).write_text(json.dumps(way.job | {"training": way.job["training"] | {"steps": steps}}))
    straight = Run(folder, f"{name}-straight", way.straight_ranks, ["--history"], job).finish()
    missed, kills, wrong = set(range(steps)), 0, ""
    times = [row["t"] for row in straight.events("save")]
    step_seconds = (times[-1] - times[0]) / (len(times) - 1)
    for number in range(8):
        hit, more, wrong = one_pass(folder, f"{name}-killed{number}", missed, rng, step_seconds, straight, way, holds=number > 0)
        missed, kills = missed - hit, kills + more
        if wrong or not missed:
            break
    seconds = time.monotonic() - begin
    print(f"{name}: {kills} kills in {seconds:.0f} s ({seconds / max(1, kills):.1f} s each) in {number + 1} runs, "
          f"{steps - len(missed)} of {steps} steps hit")
    if missed:
        print(f"steps without a kill: {sorted(missed)}")
    print(wrong, end="", flush=True)
    return not wrong and not missed, kills


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rng = random.Random(seed_from(sys.argv, 2))
    with folder_for("every-step") as folder:
        build_hold(folder)
        results = [try_way(folder, name, steps, rng) for name in ways_of(sys.argv[3:])]
    passed = sum(good for good, _ in results)
    return verdict("every_step", passed, len(results) - passed, sum(kills for _, kills in results))


if __name__ == "__main__":
    sys.exit(main())
