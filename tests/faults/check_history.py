#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves from what every rank of a run wrote down (train --history) that each sample was taken once an epoch.

check_history.py RUN [LIKE]: the steps that count are those of the last session that took them. Of these: no step is
missing, the ranks of a step held the same weights (those with training.zero 3: each its own partition), every sample of an epoch was taken exactly once (of an epoch that a
rewind cut into: at most once; of a last epoch that is cut short: as many as its steps hold), and with LIKE, another run
folder, the samples of each step and the weights after it were those of that run.
"""
import collections
import json
import pathlib
import sys


def lines_of(path):
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass  # empty, or torn by a kill


def effective_steps(run):
    """step -> {rank: line}, of the sessions that count; and how many steps were taken in all."""
    sessions = {}  # id -> (first step, ranks, {rank: lines})
    for path in sorted(pathlib.Path(run, "history").glob("rank-*.jsonl")):
        rank, current = int(path.stem.split("-")[1]), None
        for line in lines_of(path):
            if "begin" in line:
                current = sessions.setdefault(line["session"], (line["begin"], line["ranks"], {}))[2].setdefault(rank, [])
            elif current is not None:
                current.append(line)
    steps, taken, rewinds = {}, 0, 0
    for _, (begin, ranks, by_rank) in sorted(sessions.items()):
        steps = {step: lines for step, lines in steps.items() if step <= begin}
        for rank, lines in by_rank.items():
            for line in lines:
                if "rewind" in line:
                    rewinds += rank == 0
                    for step in [step for step in steps if step > line["rewind"]]:
                        steps[step].pop(rank, None)
                else:
                    steps.setdefault(line["step"], {})[rank] = line
                    taken += rank == 0
        for step in [step for step, lines in steps.items() if step > begin and len(lines) != ranks]:
            del steps[step]  # a kill came while the ranks wrote it down; it was taken again, or the end is missing
    return steps, taken, rewinds, [ranks for _, (_, ranks, _) in sorted(sessions.items())]


def samples_of(lines):
    return sorted(sample for line in lines.values() for sample in line["samples"])


def partition_of(line):
    """What of the weights the line's checksum is of: None, all of them; else (rank, ranks) of training.zero 3."""
    return tuple(line["partition"]) if "partition" in line else None


def weights_of(lines):
    """partition -> the checksums that the ranks of a step wrote down for it."""
    weights = collections.defaultdict(set)
    for line in lines.values():
        weights[partition_of(line)].add(line["weights"])
    return weights


def partitions_amiss(lines):
    """Whether some ranks of a step hold partitions and others do not, or not one partition each, or not that of their own rank."""
    partitions = {rank: partition_of(line) for rank, line in lines.items()}
    return any(partitions.values()) and partitions != {rank: (rank, len(lines)) for rank in lines}


def stuck(steps):
    """Partitions that have the same checksum after every step: then it is not of weights that are trained."""
    by_partition = collections.defaultdict(list)
    for lines in steps.values():
        for partition, weights in weights_of(lines).items():
            by_partition[partition] += weights
    return [partition for partition, weights in by_partition.items() if len(weights) > 1 and len(set(weights)) == 1]


def compare(steps, like, same_weights):
    """What is different from another run, whatever its ranks."""
    wrong, expected = [], effective_steps(like)[0]
    for step, lines in sorted(steps.items()):
        other = expected.get(step)
        if other is None or samples_of(other) != samples_of(lines):
            wrong.append(f"step {step}: other samples than the undisturbed run")
        elif same_weights and weights_of(other).keys() != weights_of(lines).keys():
            wrong.append(f"step {step}: other partitions of the weights than in the undisturbed run, nothing to compare")
        elif same_weights and weights_of(other) != weights_of(lines):
            wrong.append(f"step {step}: other weights than the undisturbed run")
    return wrong


def check(run, like=None, same_weights=True):
    """Returns what is wrong, as a list of texts, and a line of figures. Without same_weights those of LIKE may differ:
    other ranks add in another order."""
    steps, taken, rewinds, ranks = effective_steps(run)
    start = [row for row in lines_of(pathlib.Path(run, "journal.jsonl")) if row["event"] in ("start", "resume")][-1]
    wrong = []
    if sorted(steps) != list(range(1, start["total_steps"] + 1)):
        wrong.append(f"steps {len(steps)} of {start['total_steps']}")
    wrong += compare(steps, like, same_weights) if like else []
    wrong += [f"the weights (partition {partition}) are the same after every step" for partition in stuck(steps)]
    seen, steps_in = collections.defaultdict(collections.Counter), collections.Counter()
    for step, lines in sorted(steps.items()):
        if partitions_amiss(lines):
            wrong.append(f"step {step}: the ranks do not hold one partition of the weights each")
        if any(len(weights) != 1 for weights in weights_of(lines).values()):
            wrong.append(f"step {step}: the ranks hold different weights")
        steps_in[lines[0]["epoch"]] += 1
        for line in lines.values():
            seen[line["epoch"]].update(line["samples"])
    for epoch, counts in seen.items():
        repeated = sum(1 for count in counts.values() if count > 1)
        lost = min(start["train_samples"], steps_in[epoch] * start["global_batch"]) - len(counts)
        if repeated:
            wrong.append(f"epoch {epoch}: {repeated} samples repeated")
        if lost and not rewinds:
            wrong.append(f"epoch {epoch}: {lost} samples lost")
    samples = sum(sum(counts.values()) for counts in seen.values())
    return wrong, f"{len(steps)} steps of {taken} taken count, on ranks {ranks}; {samples} samples, {len(wrong)} wrong"


def main():
    wrong, figures = check(*sys.argv[1:3])
    print("\n".join(wrong[:10] + [figures]))
    print(f"check_history: {int(not wrong)} passed, {int(bool(wrong))} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
