#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: serving web
"""Speaks with `lockstep serve` through NVIDIA's tritonclient: health, metadata, inference in JSON and binary tensors; and
holds the numbers to `lockstep predict`."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/serve"))
from served import LOCKSTEP, Served  # noqa: E402

JOB = {"name": "shapes", "data": {"train": "set/train", "image_size": 16, "threads": 1},
       "model": {"name": "smallcnn", "width": 4}, "training": {"global_batch": 8, "epochs": 1, "threads": 1}}


def lockstep(*words):
    return subprocess.run([LOCKSTEP, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def tensor(values, datatype, binary):
    given = triton.InferInput("image", list(values.shape), datatype)
    given.set_data_from_numpy(values, binary_data=binary)
    return given


def refused(call, status, words):
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == str(status) and words in error.message(), (error.status(), error.message())
        return
    raise AssertionError(f"not refused: {words}")


def check(server, files, expected):
    client = triton.InferenceServerClient(url=f"127.0.0.1:{server.port}")
    headers = {"Authorization": f"Bearer {server.token}"}

    def infer(name, inputs, **more):
        return client.infer(name, inputs, headers=dict(headers), **more)  # it leaves its own headers in there

    assert client.is_server_live(headers=headers) and client.is_server_ready(headers=headers)
    assert client.is_model_ready("shapes", headers=headers) and not client.is_model_ready("other", headers=headers)
    assert not client.is_server_live(), "without the token"
    assert "binary_tensor_data" in client.get_server_metadata(headers=headers)["extensions"]
    about = client.get_model_metadata("shapes", headers=headers)
    assert about["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [-1, 3, 16, 16]}], about
    version = about["versions"][0]

    # Image files as BYTES: the same numbers as predict.
    images = numpy.array([path.read_bytes() for path in files], dtype=numpy.object_)
    for outputs in (None, [triton.InferRequestedOutput("record", binary_data=False),
                           triton.InferRequestedOutput("probabilities", binary_data=True)]):
        answer = infer("shapes", [tensor(images, "BYTES", True)], model_version=version, outputs=outputs, request_id="7")
        assert answer.get_response()["id"] == "7"
        assert [json.loads(record)["classes"] for record in answer.as_numpy("record")] == expected
        shares = answer.as_numpy("probabilities")
        assert shares.shape == (len(files), 3) and abs(shares.sum(axis=1) - 1).max() < 1e-5

    # Pixels as numbers, in binary and in JSON: the same bits, alone and in a batch.
    pixels = numpy.random.default_rng(1).normal(size=(5, 3, 16, 16)).astype(numpy.float32)
    json_outputs = [triton.InferRequestedOutput("probabilities", binary_data=False)]
    binary = infer("shapes", [tensor(pixels, "FP32", True)]).as_numpy("probabilities")
    plain = infer("shapes", [tensor(pixels, "FP32", False)], outputs=json_outputs).as_numpy("probabilities")
    assert (binary == plain).all()
    alone = infer("shapes", [tensor(pixels[2:3], "FP32", True)]).as_numpy("probabilities")
    assert abs(alone[0] - binary[2]).max() < 1e-6

    def ask(given, name="shapes", **more):
        return lambda: infer(name, [given], **more)
    refused(ask(tensor(pixels[:, :2], "FP32", True)), 400, "a shape [rows, 3, 16, 16] is expected")
    refused(ask(tensor(pixels.astype(numpy.float64), "FP64", True)), 400, "datatype FP64 is not taken")
    refused(ask(tensor(pixels, "FP32", True), name="other"), 404, "unknown model")
    refused(ask(tensor(pixels, "FP32", True), model_version="9"), 404, "version")
    refused(ask(tensor(pixels, "FP32", True), outputs=[triton.InferRequestedOutput("logits")]), 400, "no output 'logits'")
    refused(ask(tensor(numpy.array([b"no image"], dtype=numpy.object_), "BYTES", True)), 400, "")
    refused(ask(tensor(pixels, "FP32", True), request_compression_algorithm="gzip"), 415, "uncompressed")
    client.close()


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-oracle-") as folder:
        os.chdir(folder)
        lockstep("prep", "--synthesize", "shapes", "--count", "60", "--classes", "3", "--to", "set")
        pathlib.Path("job.json").write_text(json.dumps(JOB))
        lockstep("train", "job.json", "--run", "run")
        files = sorted(path for path in pathlib.Path("set/train").rglob("*") if path.suffix in (".png", ".jpg"))[:4]
        said = json.loads(lockstep("predict", "run", *map(str, files), "--json", "-"))
        with Served("run") as server:
            check(server, files, [image["classes"] for image in said["images"]])
            assert server.end() == 0
    print("serve.py: tritonclient agrees: metadata, JSON and binary tensors, 7 refusals")


if __name__ == "__main__":
    main()
