# SPDX-License-Identifier: Apache-2.0
"""Images in, classes out, as the Python servers do it: Pillow and numpy."""
import io

import numpy
from PIL import Image

MEAN, STD = numpy.float32([0.485, 0.456, 0.406]), numpy.float32([0.229, 0.224, 0.225])


def pixels(body, size):
    """The shorter side to 256/224 of the size, then the centre, as torchvision has it."""
    image = Image.open(io.BytesIO(body)).convert("RGB")
    scale = size * 256 / 224 / min(image.size)
    width, height = (max(size, round(side * scale)) for side in image.size)
    image = image.resize((width, height), Image.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    image = image.crop((left, top, left + size, top + size))
    return ((numpy.asarray(image, numpy.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)[None]


def answer(logits, top=5):
    shares = numpy.exp(logits - logits.max())
    shares /= shares.sum()
    return {"classes": [{"name": str(i), "probability": float(shares[i])} for i in numpy.argsort(-shares)[:top]]}
