#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep serve` beside onnxruntime behind FastAPI and in LitServe, in one run: speed.py [--rounds N] [--to FILE].

The same JPEG, the same network with the same weights, the same machine; `hey` asks over 1, 4, 16 and 32 connections. Of each
server and each number of connections the median over the rounds counts; servers take turns within a round, so that what
else the machine does meets all of them. The ratio is that of the highest rates at which p99 stays within what the peer
has at its own best. Needs `scripts/deps.sh servers`.
"""
import argparse
import base64
import json
import os
import pathlib
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from served import LOCKSTEP, ROOT, Served

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ROOT / ".deps/servers/bin/python"
ORACLES = ROOT / ".deps/oracles/bin/python"
SIZE, CONNECTIONS = 224, (1, 4, 16, 32)
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
    done = subprocess.run(["hey", "-z", f"{seconds}s", "-c", str(connections), "-m", "POST", "-D", file, "-T", kind,
                           "-H", f"Authorization: Bearer {server.token}", f"{server.url}/predict"],
                          check=True, capture_output=True, text=True).stdout
    statuses = re.findall(r"\[(\d+)\]\s+(\d+) responses", done)
    assert [status for status, _ in statuses] == ["200"] and "Error distribution" not in done, done
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done).group(1))
    p50, p99 = (1e3 * float(re.search(rf"{share}% in ([\d.]+) secs", done).group(1)) for share in (50, 99))
    return rate, p50, p99


def best_within(table, limit):
    """The highest rate whose p99 stays within the limit."""
    return max((row["rate"] for row in table if row["p99_ms"] <= limit), default=0.0)


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
        whole = statistics.median(ask(server, pixel, 1, 2)[1] for _ in range(rounds))
        metrics = subprocess.run(["curl", "-sS", "-H", f"Authorization: Bearer {server.token}", f"{server.url}/metrics"],
                                 check=True, capture_output=True, text=True).stdout
        spent = float(re.search(r"^lockstep_network_seconds_total (\S+)", metrics, re.M).group(1))
        passes = float(re.search(r"^lockstep_batches_total (\S+)", metrics, re.M).group(1))
    return {"answer_ms": round(whole, 3), "network_ms": round(1e3 * spent / passes, 3),
            "overhead_ms": round(whole - 1e3 * spent / passes, 3)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--to", type=pathlib.Path)
    given = parser.parse_args()
    result = {"command": "python3 tests/serve/speed.py " + " ".join(sys.argv[1:]), "host": platform.processor() or platform.machine(),
              "cores": os.cpu_count(), "rounds": given.rounds, "seconds": given.seconds, "networks": {}}
    with tempfile.TemporaryDirectory(prefix="lockstep-speed-") as name:
        folder = pathlib.Path(name)
        subprocess.run([ORACLES, "-c", PHOTO, folder / "photo.jpg"], check=True)
        encoded = base64.b64encode((folder / "photo.jpg").read_bytes()).decode()
        (folder / "photo.json").write_text(json.dumps({"image": encoded}))  # LitServe takes JSON
        result["http"] = http_overhead(folder, given.rounds)
        print(result["http"], flush=True)
        for theirs, ours in NETWORKS.items():
            onnx, weights = folder / f"{theirs}.onnx", folder / f"{theirs}.safetensors"
            subprocess.run([ORACLES, "-c", EXPORT, theirs, onnx, weights, str(SIZE)], check=True, stderr=subprocess.DEVNULL)
            job = {"name": ours, "data": {"train": "synthetic", "samples": 16, "image_size": SIZE}, "model": {"name": ours, "classes": 1000},
                   "training": {"steps": 1}}
            (folder / f"{ours}.json").write_text(json.dumps(job))
            with Served(weights, "--job", folder / f"{ours}.json") as lockstep, Peer("fastapi", onnx) as fastapi, \
                    Peer("litserve", onnx) as litserve:
                tables = measure({"lockstep": lockstep, "fastapi": fastapi, "litserve": litserve}, folder / "photo.jpg",
                                 given.rounds, given.seconds)
            ratios = {}
            for peer in ("fastapi", "litserve"):
                best = max(tables[peer], key=lambda row: row["rate"])
                ratios[peer] = round(best_within(tables["lockstep"], best["p99_ms"]) / best["rate"], 3)
            result["networks"][theirs] = {"tables": tables, "ratio_at_equal_p99": ratios}
            print(theirs, json.dumps(result["networks"][theirs]), flush=True)
    if given.to:
        given.to.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
