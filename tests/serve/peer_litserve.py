# SPDX-License-Identifier: Apache-2.0
"""The same network in LitServe, with its dynamic batches; images come in JSON, as base64. peer_litserve.py MODEL.onnx PORT SIZE"""
import base64
import sys

import litserve
import numpy


class Classifier(litserve.LitAPI):
    def setup(self, device):
        import onnxruntime
        self.session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])

    def decode_request(self, request):
        from peer_pixels import pixels
        return pixels(base64.b64decode(request["image"]), int(sys.argv[3]))

    def batch(self, inputs):
        return numpy.concatenate(inputs)

    def predict(self, batch):
        return self.session.run(None, {"image": batch})[0]

    def unbatch(self, output):
        return list(output)

    def encode_response(self, logits):
        from peer_pixels import answer
        return answer(logits)


if __name__ == "__main__":
    server = litserve.LitServer(Classifier(max_batch_size=16, batch_timeout=0.002), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False, log_level="warning")
