#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Factors of PyTorch steps: fit_foreign.py RECORDINGS results/foreign-h200.json [--write lockstep/forecast/python_steps.json]
Plan against fact of them:   fit_foreign.py RECORDINGS results/foreign-h200.json --forecast

RECORDINGS has NAME.rec of each step (scripts/foreign_steps.py RECORDINGS; made without a GPU). --forecast holds the plan as
it is against each measured step, writes what it says into the rows (columns forecast_*) and prints the median of those that
took no part in the fit. For a fit the plan is to be made without factors (an empty python_steps.json: host 1, no classes,
no names). Factors come
from the steps that are FITTED alone: what their operators took by class and layout beside what a plan without factors says,
each drawn towards 1 as by one step more. What Python's launching thread takes of ours is the ratio of two measurements of the
same GPU node: ResNet-50 at batch 32, 2,409 images/s from C++ and 1,929 from Python, both bound by it. The interval is of each of them left out in turn. The steps that
are JUDGED are foretold by the result and printed.
"""
import collections
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build")) / "bin/lockstep"
NAMED = ("aten::upsample_bilinear2d_backward",)  # no class foretells it: every pixel is added to by many
HOST = 2409 / 1929
FEW = 0.02  # of a step: classes that take less say nothing of their factor


def plan(path):
    done = subprocess.run([LOCKSTEP, "plan", "--recording", path, "--on", "h200", "--steps", "10", "--json", "-"],
                          capture_output=True, text=True, check=True)
    option = json.loads(done.stdout)["options"][0]
    return option["step_seconds"], option["time"], option["time_by_class"], option["memory"]["peak_reserved_bytes"]


def forecast(folder, file):
    """The plan's own words of each step into its row; the JUDGED ones as a table."""
    rows = json.load(open(file))
    commit = subprocess.run([LOCKSTEP, "--version"], capture_output=True, text=True, check=True).stdout
    judged = []
    for row in rows:
        step, time, _, reserved = plan(folder / f"{row['model']}.rec")
        error, memory = step["value"] / row["seconds"] - 1, reserved / row["peak_reserved_bytes"] - 1
        row.update(forecast_seconds=step["value"], forecast_low_seconds=step["low"], forecast_high_seconds=step["high"],
                   forecast_error=round(error, 4), inside=step["low"] <= row["seconds"] <= step["high"],
                   host_bound=time["host_bound"], forecast_reserved_bytes=reserved, forecast_memory_error=round(memory, 4),
                   forecast_command="scripts/foreign_steps.py DIR && scripts/fit_foreign.py DIR results/foreign-h200.json --forecast",
                   forecast_commit=commit.split("(")[-1].rstrip(")\n"))
        if not row["fitted"]:
            judged.append(row)
    for row in sorted(judged, key=lambda row: abs(row["forecast_error"])):
        print(f"{row['model']:20} batch {row['batch']:3}  {row['seconds'] * 1e3:6.1f} ms  plan {row['forecast_seconds'] * 1e3:6.1f} "
              f"({row['forecast_low_seconds'] * 1e3:.1f} to {row['forecast_high_seconds'] * 1e3:.1f})  {row['forecast_error']:+7.1%}  "
              f"{'inside' if row['inside'] else 'outside'}{', host-bound' if row['host_bound'] else ''}; "
              f"reserved {row['forecast_memory_error']:+.1%}")
    errors, memory = ([abs(row[key]) for row in judged] for key in ("forecast_error", "forecast_memory_error"))
    print(f"{len(judged)} steps that no rule was fitted on (their figures were seen while others were chosen: not blind): time "
          f"median {statistics.median(errors):.1%}, within 12 %: {sum(e <= .12 for e in errors)}, inside the interval: "
          f"{sum(row['inside'] for row in judged)}; reserved within 3 %: {sum(e <= .03 for e in memory)}, most under "
          f"{min(0, *(row['forecast_memory_error'] for row in judged)):.1%}")
    with open(file, "w") as out:
        out.write(json.dumps(rows, indent=1) + "\n")


def header(path):
    return json.loads(open(path).readline())


def named_seconds(path):
    """Roofline seconds of NAMED operators in the last step, as elementwise ones are foretold at most."""
    rows, inside, total = [], False, collections.Counter()
    for line in open(path):
        kind, *words = line.split()
        if kind == "o":
            rows.append((words[0], float(words[5])))
        elif kind in "se" and words[0] == "2":
            inside = kind == "s"
        elif kind == "r" and inside and rows[int(words[0])][0] in NAMED:
            total[rows[int(words[0])][0]] += rows[int(words[0])][1] / 4.8e12
    return total


def kinds(device_seconds):
    from lockstep import operators
    by_class = collections.Counter()
    for name, seconds in device_seconds.items():
        if name in NAMED:
            continue
        short = name.rpartition("::")[2]
        kind = {"cudnn_convolution": "convolution", "_conv_depthwise2d": "convolution",
                "convolution_backward": "gradients", "_cudnn_attention_backward": "attention_gradient",
                "_cudnn_attention_forward": "attention"}.get(short) or operators.BY_NAME.get(short)
        if not kind:
            begins = [k for begin, k in operators.BY_BEGINNING if short.startswith(begin)]
            kind = begins[0] + ("_gradient" if "backward" in short and begins[0] == "pooling" else "") if begins else "elementwise"
        by_class[kind] += seconds
    return by_class


def joined(by_class):
    """Both gradients of a convolution are one call."""
    out = collections.Counter(by_class)
    out["gradients"] = out.pop("convolution_input_gradient", 0) + out.pop("convolution_weight_gradient", 0)
    return out


class Step:
    def __init__(self, row, folder):
        self.row, self.path = row, folder / f"{row['model']}.rec"
        self.step, self.time, self.by_class, self.reserved = plan(self.path)
        self.layout = header(self.path)["layout"]
        self.named = named_seconds(self.path)

    def foretold(self, fit):
        host, factors, names = fit
        device = sum(seconds * factors.get((kind, self.layout), 1) for kind, seconds in joined(self.by_class).items())
        device += sum(seconds * (names.get(name, 1) - 1) for name, seconds in self.named.items())
        return max(device, host * self.time["host_seconds"])


def fit(steps):
    ratios, names = collections.defaultdict(list), collections.defaultdict(list)
    for one in steps:
        measured, ours = kinds(one.row["device_seconds"]), joined(one.by_class)
        total = sum(one.row["device_seconds"].values())
        for kind, seconds in measured.items():
            if seconds > FEW * total and ours.get(kind, 0) > 0:
                ratios[kind, one.layout].append(math.log(seconds / ours[kind]))
        for name, seconds in one.named.items():
            if seconds > 0 and name in one.row["device_seconds"]:
                names[name].append(one.row["device_seconds"][name] / seconds)
    factors = {key: math.exp(sum(values) / (len(values) + 1)) for key, values in ratios.items()}
    return HOST, factors, {k: statistics.median(v) for k, v in names.items()}


def document(found, low, high, count):
    host, factors, names = found
    rows = []
    for (kind, layout), factor in sorted(factors.items()):
        for one in ("convolution_input_gradient", "convolution_weight_gradient") if kind == "gradients" else (kind,):
            rows.append({"class": one, "layout": layout, "factor": round(factor, 3)})
    return {"host": round(host, 3), "steps": count, "low": round(low, 3), "high": round(high, 3), "classes": rows,
            "names": {name: round(value, 1) for name, value in names.items()}}


def main():
    folder, rows = pathlib.Path(sys.argv[1]), json.load(open(sys.argv[2]))
    if "--forecast" in sys.argv:
        return forecast(folder, sys.argv[2])
    steps = [Step(row, folder) for row in rows]
    fitted = [one for one in steps if one.row["fitted"]]
    # Factors are taken only where they help steps that were left out of them.
    tried = {"factors": [], "none": []}
    for one in fitted:
        with_factors = one.foretold(fit([other for other in fitted if other is not one]))
        without = one.foretold((HOST, {}, {}))
        tried["factors"].append(one.row["seconds"] / with_factors)
        tried["none"].append(one.row["seconds"] / without)
        print(f"fitted {one.row['model']}: {with_factors * 1e3:.1f} ms by factors without itself, {without * 1e3:.1f} by none, "
              f"was {one.row['seconds'] * 1e3:.1f}")
    errors = {name: statistics.median(abs(math.log(ratio)) for ratio in ratios) for name, ratios in tried.items()}
    chosen = min(errors, key=errors.get)
    print(f"median of steps left out: {errors}; taken: {chosen}")
    left_out, found = tried[chosen], fit(fitted) if chosen == "factors" else (HOST, {}, {})
    left_out.sort()
    low, high = min(1, left_out[0]), max(1, left_out[-1])  # of eight, all: fewer would be less than 80 %
    print(f"interval {low:.2f} to {high:.2f}; host {found[0]:.2f}")
    errors = []
    for one in steps:
        if one.row["fitted"]:
            continue
        foretold = one.foretold(found)
        errors.append(foretold / one.row["seconds"] - 1)
        inside = low * foretold <= one.row["seconds"] <= high * foretold
        print(f"judged {one.row['model']}: {foretold * 1e3:.1f} ms, was {one.row['seconds'] * 1e3:.1f} "
              f"({errors[-1]:+.0%}){'' if inside else ' outside'}; without factors {one.step['value'] * 1e3:.1f}; "
              f"reserved {one.reserved / one.row['peak_reserved_bytes'] - 1:+.1%}")
    print(f"judged: median {statistics.median(map(abs, errors)):.1%}")
    if "--write" in sys.argv:
        pathlib.Path(sys.argv[sys.argv.index("--write") + 1]).write_text(
            json.dumps(document(found, low, high, len(fitted)), indent=2) + "\n")


if __name__ == "__main__":
    main()
