#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other model servers fell for, sent to `lockstep serve` by somebody who has the token: published.py RUN.

A row is a published weakness (whose, its number) and the bytes on the wire; the answer's status must be one of those named,
hold nothing of the machine's files, and the next client must be served as if nothing had been. Without the token every row
is answered by 4xx as well.
"""
import json
import re
import socket
import struct
import sys

from served import Served

SECRET = re.compile(rb"root:.?:0:0|BEGIN [A-Z ]*PRIVATE KEY")


def request(method, target, body=b"", *fields):
    """Bytes of a request; `fields` replace those that every client sends."""
    names = {field.split(":")[0].lower() for field in fields}
    usual = [f"Content-Length: {len(body)}"] if not names & {"content-length", "transfer-encoding"} else []
    usual += ["Host: localhost"] if "host" not in names else []
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *usual, *fields, "Authorization: Bearer TOKEN", "", ""])
    return head.encode("latin-1") + body


def infer(inputs, *fields, tail=b""):
    body = json.dumps({"inputs": inputs}).encode()
    return request("POST", "/v2/models/MODEL/infer", body + tail, *[field.replace("JSON", str(len(body))) for field in fields])


def numbers(shape, size=None, data=None):
    one = {"name": "image", "shape": shape, "datatype": "FP32"}
    return [one | ({"parameters": {"binary_data_size": size}} if size is not None else {"data": data or [1.0]})]


CHUNKS = b"".join(b"1\r\n{\r\n" for _ in range(20000)) + b"0\r\n\r\n"
PICKLE = b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94."
SMUGGLED = b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\n\r\n"
BINARY = "Inference-Header-Content-Length: JSON"

ROWS = [  # (whose and which, statuses, request)
    ("MLflow CVE-2023-1177, CVE-2023-2780: a path that leads out", {400},
     request("GET", "/v2/models/../../../../etc/passwd")),
    ("MLflow CVE-2023-2356: out by the query", {404}, request("GET", "/get-artifact?path=../../../../etc/passwd&run_uuid=1")),
    ("MLflow CVE-2024-1560: decoded twice", {400, 404}, request("GET", "/v2/models/%252e%252e/%252e%252e/etc/passwd")),
    ("a path that leads out, encoded", {400}, request("GET", "/v2/models/%2e%2e/%2e%2e/etc/passwd")),
    ("encoded slashes", {400}, request("GET", "/v2/models/..%2f..%2fetc%2fpasswd")),
    ("backslashes", {400}, request("GET", "/v2/models/..\\..\\etc\\passwd")),
    ("an absolute name", {400}, request("GET", "/v2/models//etc/passwd")),
    ("a file as model", {400, 404}, request("GET", "/v2/models/file:%2f%2f%2fetc%2fpasswd")),
    ("Ollama CVE-2024-37032: a digest that is a path", {400, 404},
     request("POST", "/api/pull", b'{"name": "../../../../etc/passwd", "digest": "sha256:../../../../etc/passwd"}')),
    ("TorchServe CVE-2023-43654: a model by its address", {404, 405},
     request("POST", "/models?url=http://169.254.169.254/latest/meta-data/&initial_workers=1")),
    ("Triton CVE-2023-31036: loading a model by a path", {404},
     request("POST", "/v2/repository/models/evil/load", b'{"parameters": {"config": "../../evil"}}')),
    ("Triton CVE-2025-23319: shared memory by name", {404, 405},
     request("POST", "/v2/systemsharedmemory/region/triton_python_backend_shm/register", b'{"key": "/x", "byte_size": 1}')),
    ("Triton CVE-2024-0087: where to log", {404, 405}, request("POST", "/v2/logging", b'{"log_file": "/etc/cron.d/x"}')),
    ("Gradio CVE-2026-28416: fetching for others", {400, 404}, request("GET", "/proxy=http://169.254.169.254/")),
    ("Triton CVE-2025-23310: a body in very many chunks", {400, 413},
     request("POST", "/v2/models/MODEL/infer", CHUNKS, "Transfer-Encoding: chunked")),
    ("BentoML CVE-2025-27520: a pickle", {400, 415},
     request("POST", "/predict", PICKLE, "Content-Type: application/vnd.bentoml+pickle")),
    ("a pickle as tensor", {400}, infer([{"name": "image", "shape": [1], "datatype": "BYTES",
                                          "parameters": {"binary_data_size": len(PICKLE)}}], BINARY, tail=PICKLE)),
    ("BentoML CVE-2024-9056: an endless boundary", {415, 431},
     request("POST", "/predict", b"x", f"Content-Type: multipart/form-data; boundary={'-' * 3000}")),
    ("a shape whose product wraps around", {400}, infer(numbers([2**32, 2**32, 16, 16], 4), BINARY, tail=b"abcd")),
    ("a negative shape", {400}, infer(numbers([-1, 3, 16, 16]))),
    ("more tensor than body", {400}, infer(numbers([1, 3, 16, 16], 3072), BINARY, tail=b"abcd")),
    ("a header longer than the body", {400}, infer(numbers([1, 3, 16, 16], 0), "Inference-Header-Content-Length: 999999")),
    ("a negative header", {400}, infer(numbers([1, 3, 16, 16], 0), "Inference-Header-Content-Length: -1")),
    ("a text longer than its tensor", {400}, infer([{"name": "image", "shape": [1], "datatype": "BYTES",
                                                     "parameters": {"binary_data_size": 4}}], BINARY, tail=struct.pack("<I", 2**32 - 1))),
    ("JSON a hundred thousand deep", {400}, request("POST", "/v2/models/MODEL/infer", b"[" * 100000)),
    ("numbers that are none", {400}, infer(numbers([1, 3, 16, 16], data=["1e999"] * 768))),
    ("a compressed body", {415}, request("POST", "/predict", b"\x1f\x8b\x08", "Content-Encoding: gzip")),
    ("smuggling: both lengths", {400}, request("POST", "/predict", SMUGGLED, "Content-Length: 5", "Transfer-Encoding: chunked")),
    ("smuggling: another coding", {400}, request("POST", "/predict", SMUGGLED, "Transfer-Encoding: xchunked")),
    ("smuggling: two codings", {400}, request("POST", "/predict", SMUGGLED, "Transfer-Encoding: chunked, identity")),
    ("smuggling: two lengths", {400}, request("POST", "/predict", SMUGGLED, "Content-Length: 5", "Content-Length: 6")),
    ("Ray CVE-2026-27482: DELETE from a page of others", {403, 405},
     request("DELETE", "/v2/models/MODEL", b"", "Origin: http://evil.example")),
    ("a page of others", {403}, request("POST", "/predict", b"x", "Origin: http://evil.example")),
    ("a page without origin", {403}, request("POST", "/predict", b"x", "Origin: null")),
    ("another name for this host (rebinding)", {421}, request("GET", "/", b"", "Host: evil.example")),
    ("two hosts", {400}, request("GET", "/", b"", "Host: localhost", "Host: evil.example")),
    ("a proxy request", {400}, request("GET", "http://169.254.169.254/")),
    ("a tunnel", {400, 405}, request("CONNECT", "169.254.169.254:80")),
    ("another protocol", {400}, request("GET", "/", b"", "Connection: Upgrade", "Upgrade: websocket")),
]


def ask(server, wire):
    """Statuses of all answers, and all bytes, until the server has nothing more to say."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one:
        try:
            one.sendall(wire)
            one.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass  # it may hang up before it has read all: the answer is there all the same
        said = b""
        try:
            while piece := one.recv(1 << 16):
                said += piece
        except ConnectionError:
            pass
    return [int(status) for status in re.findall(rb"^HTTP/1\.1 (\d+) ", said, re.M)], said


def main():
    failures = 0
    with Served(sys.argv[1]) as server:
        model = re.search(r"^(\S+), version", server.said(), re.M).group(1)
        alive = request("GET", "/v2/health/live").replace(b"TOKEN", server.token.encode())
        for title, wanted, wire in ROWS:
            wire = wire.replace(b"MODEL", model.encode())
            statuses, said = ask(server, wire.replace(b"TOKEN", server.token.encode()))
            strange, _ = ask(server, wire.replace(b"TOKEN", b"0" * 64))
            after, _ = ask(server, alive)
            right = len(statuses) == 1 and statuses[0] in wanted and not SECRET.search(said)
            right = right and len(strange) == 1 and 400 <= strange[0] < 500 and after == [200]
            failures += not right
            if not right:
                print(f"FAIL {title}: {statuses} instead of {wanted}, without the token {strange}, afterwards {after}\n{said[-300:]}")
        code = server.end()
    print(f"published.py: {len(ROWS)} shapes, {failures} failed, server: exit {code}")
    return 1 if failures or code else 0


if __name__ == "__main__":
    sys.exit(main())
