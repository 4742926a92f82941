# SPDX-License-Identifier: Apache-2.0
"""What people write: onnxruntime behind FastAPI and uvicorn. peer_fastapi.py MODEL.onnx PORT SIZE"""
import sys

import fastapi
import fastapi.concurrency
import onnxruntime
import uvicorn

from peer_pixels import answer, pixels

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
app = fastapi.FastAPI()


def predict(body):
    return answer(session.run(None, {"image": pixels(body, int(sys.argv[3]))})[0][0])


# On FastAPI's threads: onnxruntime and Pillow give up the interpreter's lock while they work.
@app.post("/predict")
async def route(request: fastapi.Request):
    return await fastapi.concurrency.run_in_threadpool(predict, await request.body())


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
