#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep serve` beside onnxruntime behind FastAPI and in LitServe, in one run: speed.py [--rounds N] [--record].

The same JPEG, the same network with the same weights, the same machine; `hey` asks over 1, 4, 16 and 32 connections. Of each
server and each number of connections the median over the rounds counts; servers take turns within a round, so that what
else the machine does meets all of them. The ratio is that of the highest rates at which p99 stays within what the peer
has at its own best. Ours answers in fp32, as theirs do, and with --precision bf16, which onnxruntime's CPU kernels do not
have. --record: rows of results/serve.json. The last line has every figure and which of them miss their goal; none of them decides
the outcome. Needs `scripts/deps.sh servers`.
"""
import argparse
import base64
import csv
import io
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time

from served import LOCKSTEP, ROOT, Served, record

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ROOT / ".deps/servers/bin/python"
ORACLES = ROOT / ".deps/oracles/bin/python"
SIZE, CONNECTIONS = 224, (1, 4, 16, 32)
LEAST_RATIO, MOST_OVERHEAD = 1.5, 0.3  # the goals; ms
PEER_NAMES = {"fastapi": "FastAPI 0.162 on uvicorn, onnxruntime 1.31", "litserve": "LitServe 0.2.19, onnxruntime 1.31"}
NETWORKS = {"mobilenet_v2": "mobilenet_v2", "resnet18": "resnet18"}  # torchvision's name -> ours

EXPORT = """
import sys, warnings, torch, torchvision
from safetensors.torch import save_file
warnings.simplefilter("ignore")
name, onnx, weights, size = sys.argv[1:]
torch.manual_seed(1)
network = getattr(torchvision.models, name)().eval()
save_file({key: value.contiguous() for key, value in network.state_dict().items() if "num_batches" not in key}, weights)
torch.onnx.export(network, torch.zeros(1, 3, int(size), int(size)), onnx, dynamo=False, opset_version=17,
                  input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
"""
PHOTO = """
import sys, numpy
from PIL import Image
rng = numpy.random.default_rng(1)
image = Image.fromarray(rng.integers(0, 255, (24, 32, 3), numpy.uint8)).resize((640, 480), Image.BICUBIC)
image.save(sys.argv[1], quality=90)
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Peer:
    def __init__(self, name, model):
        self.name, self.script, self.model, self.token = name, HERE / f"peer_{name}.py", model, ""

    def __enter__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen([PEERS, self.script, self.model, str(self.port), str(SIZE)], cwd=HERE,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(600):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        raise RuntimeError(f"{self.script.name} did not start")

    def __exit__(self, *_):
        os.killpg(self.process.pid, 15)
        self.process.wait()


def ask(server, image, connections, seconds):
    """(requests a second, p50, p99 in ms) of one round; every answer must be 200."""
    file, kind = (image.with_suffix(".json"), "application/json") if "litserve" in server.name else (image, "image/jpeg")
    done = subprocess.run(["hey", "-z", f"{seconds}s", "-c", str(connections), "-m", "POST", "-D", file, "-T", kind, "-o", "csv",
                           "-H", f"Authorization: Bearer {server.token}", f"{server.url}/predict"],
                          check=True, capture_output=True, text=True).stdout
    answers = list(csv.DictReader(io.StringIO(done)))
    assert answers and {answer["status-code"] for answer in answers} == {"200"}, done[:2000]
    times = sorted(float(answer["response-time"]) for answer in answers)
    length = max(float(answer["offset"]) + float(answer["response-time"]) for answer in answers)
    at = lambda share: 1e3 * times[min(len(times) - 1, int(share * len(times)))]
    return len(times) / length, at(0.5), at(0.99)


def best_within(table, limit):
    """The row of the highest rate whose p99 stays within the limit."""
    return max((row for row in table if row["p99_ms"] <= limit), key=lambda row: row["rate"], default=None)


def measure(servers, image, rounds, seconds):
    for server in servers.values():
        ask(server, image, 4, 1)  # warm
    seen = {name: {number: [] for number in CONNECTIONS} for name in servers}
    for _ in range(rounds):
        for number in CONNECTIONS:
            for name, server in servers.items():
                seen[name][number].append(ask(server, image, number, seconds))
    return {name: [dict(zip(("connections", "rate", "p50_ms", "p99_ms"),
                            (number, *(round(statistics.median(column), 3) for column in zip(*rows)))))
                   for number, rows in table.items()] for name, table in seen.items()}


def http_overhead(folder, rounds):
    """What HTTP, queue and threads cost around a network that costs next to nothing: /predict of a tiny PNG by one client."""
    job = {"name": "tiny", "data": {"train": "synthetic", "samples": 16, "image_size": 8}, "model": {"name": "linear", "classes": 2},
           "training": {"global_batch": 8, "steps": 1}}
    (folder / "tiny.json").write_text(json.dumps(job))
    subprocess.run([LOCKSTEP, "train", folder / "tiny.json", "--run", folder / "tiny"], check=True, capture_output=True)
    pixel = folder / "pixel.png"
    subprocess.run([ORACLES, "-c", "import sys; from PIL import Image; Image.new('RGB', (8, 8)).save(sys.argv[1])", pixel], check=True)
    with Served(folder / "tiny") as server:
        whole = statistics.median(1e3 / ask(server, pixel, 1, 2)[0] for _ in range(rounds))  # its percentiles have steps of 0.1 ms
        metrics = subprocess.run(["curl", "-sS", "-H", f"Authorization: Bearer {server.token}", f"{server.url}/metrics"],
                                 check=True, capture_output=True, text=True).stdout
        spent = float(re.search(r"^lockstep_network_seconds_total (\S+)", metrics, re.M).group(1))
        passes = float(re.search(r"^lockstep_batches_total (\S+)", metrics, re.M).group(1))
    return {"answer_ms": round(whole, 3), "network_ms": round(1e3 * spent / passes, 3),
            "overhead_ms": round(whole - 1e3 * spent / passes, 3)}


def compare(folder, theirs, ours, given):
    """Rows of one network."""
    onnx, weights = folder / f"{theirs}.onnx", folder / f"{theirs}.safetensors"
    subprocess.run([ORACLES, "-c", EXPORT, theirs, onnx, weights, str(SIZE)], check=True, stderr=subprocess.DEVNULL)
    job = {"name": ours, "data": {"train": "synthetic", "samples": 16, "image_size": SIZE}, "model": {"name": ours, "classes": 1000},
           "training": {"steps": 1}}
    (folder / f"{ours}.json").write_text(json.dumps(job))
    words = [weights, "--job", folder / f"{ours}.json"]
    with Served(*words) as fp32, Served(*words, "--precision", "bf16") as bf16, Peer("fastapi", onnx) as fastapi, Peer("litserve", onnx) as litserve:
        tables = measure({"fp32": fp32, "bf16": bf16, "fastapi": fastapi, "litserve": litserve}, folder / "photo.jpg", given.rounds, given.seconds)
    rows = []
    for precision in ("fp32", "bf16"):
        for peer, name in PEER_NAMES.items():
            best = max(tables[peer], key=lambda row: row["rate"])
            mine = best_within(tables[precision], best["p99_ms"])
            rows.append({"model": theirs, "precision": precision, "peer": name, "ratio": round((mine["rate"] if mine else 0) / best["rate"], 3),
                         **{f"ours_{key}": value for key, value in (mine or {}).items()}, **{f"peer_{key}": value for key, value in best.items()}})
    for name, table in tables.items():
        print(theirs, name, " | ".join(f"{row['connections']}: {row['rate']:.1f}/s p50 {row['p50_ms']:.1f} p99 {row['p99_ms']:.1f}" for row in table), flush=True)
    for row in rows:
        print(f"{theirs} {row['precision']} beside {row['peer']}: {row['ratio']}", flush=True)
    return rows


def judged(http, rows):
    """Of every figure: its words, and whether it meets its goal."""
    yield f"HTTP {http['overhead_ms']} ms", http["overhead_ms"] <= MOST_OVERHEAD
    for row in rows:
        yield f"{row['model']} {row['precision']} {row['ratio']} x {row['peer'].split()[0]}", row["ratio"] >= LEAST_RATIO


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    command = f"tests/serve/speed.py --rounds {given.rounds} --seconds {given.seconds} --record"
    with tempfile.TemporaryDirectory(prefix="lockstep-speed-") as name:
        folder = pathlib.Path(name)
        subprocess.run([ORACLES, "-c", PHOTO, folder / "photo.jpg"], check=True)
        encoded = base64.b64encode((folder / "photo.jpg").read_bytes()).decode()
        (folder / "photo.json").write_text(json.dumps({"image": encoded}))  # LitServe takes JSON
        http = http_overhead(folder, given.rounds)
        print(http, flush=True)
        rows = [row for theirs, ours in NETWORKS.items() for row in compare(folder, theirs, ours, given)]
    if given.record:
        record("what HTTP, queue and threads cost around a network that costs next to nothing", [http | {"command": command}])
        record("requests a second at the peer's own p99, where the peer is at its best", [row | {"command": command} for row in rows])
    figures = list(judged(http, rows))
    missed = [words for words, is_met in figures if not is_met]
    # The last line is the row's in results/test_all.json.
    print(f"speed.py: {', '.join(words for words, _ in figures)}; goals (HTTP at most {MOST_OVERHEAD} ms, {LEAST_RATIO} x): "
          f"{len(figures) - len(missed)} of {len(figures)} met" + (f"; missed: {', '.join(missed)}" if missed else ""))


if __name__ == "__main__":
    main()
