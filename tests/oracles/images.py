#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: image
"""Our decoder and evaluation pixels against PIL and torchvision.

Decoded images must be equal to PIL's within 1/255 (0 for most kinds); evaluation's resize and crop within 2/255 in the
mean of torchvision's. Parts must equal the whole for every chroma sampling and for progressive files. The
operations of RandAugment and TrivialAugment must equal torchvision's within 1/255, but for ties of the shears.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision.transforms as T
from PIL import Image, ImageOps
from torchvision.transforms.autoaugment import _apply_op

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build"))
OPERATIONS = ("Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
              "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize")
PROBE = str(BUILD / "bin/decode_probe")


def make_image(width, height, channels, seed=0):
    """Smooth shapes plus noise: both chroma interpolation and high frequencies matter."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 80 * np.sin(x / (7 + 5 * c) + y / (11 + 3 * c)) + 30 * rng.standard_normal((height, width))
              for c in range(channels)]
    values = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
    return values[..., 0] if channels == 1 else values


def cases(folder):
    """Yields (file, what PIL sees in it as RGB on white)."""
    def save(name, image, **options):
        path = folder / name
        image.save(path, **options)
        return path

    def seen(path):
        image = ImageOps.exif_transpose(Image.open(path))
        if image.mode in ("RGBA", "LA") or "transparency" in image.info:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        return np.asarray(image.convert("RGB"))

    rgb = Image.fromarray(make_image(251, 187, 3))
    gray = Image.fromarray(make_image(251, 187, 1))
    paths = [save(f"rgb_{s}.jpg", rgb, quality=90, subsampling=s) for s in ("4:4:4", "4:2:2", "4:2:0")]
    paths.append(save("progressive.jpg", rgb, quality=85, progressive=True))
    paths.append(save("gray.jpg", gray, quality=90))
    paths.append(save("cmyk.jpg", Image.fromarray(make_image(251, 187, 4), "CMYK"), quality=95))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        paths.append(save(f"turned_{orientation}.jpg", rgb, quality=90, exif=exif))
    paths.append(save("rgb.png", rgb))
    paths.append(save("gray.png", gray))
    paths.append(save("bilevel.png", gray.convert("1")))
    paths.append(save("palette.png", rgb.quantize(64)))
    paths.append(save("rgba.png", Image.fromarray(make_image(251, 187, 4), "RGBA")))
    paths.append(save("gray_alpha.png", Image.fromarray(make_image(251, 187, 2), "LA")))
    rgba = Image.fromarray(make_image(251, 187, 4), "RGBA")
    for kind, options in (("lossy", {"quality": 80}), ("lossless", {"lossless": True})):
        paths.append(save(f"rgb_{kind}.webp", rgb, **options))
        paths.append(save(f"rgba_{kind}.webp", rgba, **options))
    exif = Image.Exif()
    exif[0x0112] = 8
    paths.append(save("turned.webp", rgb, quality=80, exif=exif))
    for compression in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        paths.append(save(f"rgb_{compression}.tif", rgb, compression=compression))
    paths += [save("gray.tif", gray), save("bilevel.tif", gray.convert("1"), compression="group4"),
              save("palette.tif", rgb.quantize(64)), save("rgba.tif", rgba),
              save("cmyk.tif", Image.fromarray(make_image(251, 187, 4), "CMYK")),
              save("turned.tif", rgb, tiffinfo={274: 6})]
    for path in paths:
        yield path, seen(path)
    deep = make_image(251, 187, 1).astype(np.uint16) * 257 + 40  # PIL cuts 16-bit gray: the truth is computed here
    for name in ("gray16.png", "gray16.tif"):
        Image.fromarray(deep).save(folder / name)
        yield folder / name, np.repeat(np.round(deep / 257).astype(np.uint8)[..., None], 3, -1)


def run(*arguments):
    return subprocess.run([PROBE, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def check_decode(folder):
    wrong = 0
    for path, expected in cases(folder):
        width, height = map(int, run("decode", path, folder / "out").split())
        ours = np.frombuffer((folder / "out").read_bytes(), np.uint8).reshape(height, width, 3)
        same_shape = ours.shape == expected.shape
        most = int(np.abs(ours.astype(int) - expected.astype(int)).max()) if same_shape else 999
        print(f"decode {path.name:20} {width} x {height}, largest difference {most}/255")
        wrong += most > 1
    return wrong


def check_parts(folder):
    wrong = 0
    for path in sorted(folder.glob("*.jpg")):
        done = subprocess.run([PROBE, "parts", str(path), "200"], capture_output=True, text=True)
        if done.returncode:
            print(f"parts of {path.name}: {done.stdout}{done.stderr}")
            wrong += 1
    print(f"parts: {len(list(folder.glob('*.jpg')))} files, 200 parts each, {wrong} wrong")
    return wrong


def check_changes(folder):
    """Every operation of RandAugment and TrivialAugment against torchvision's own, at each of its 31 strengths."""
    values = make_image(96, 80, 3, seed=4)
    path = folder / "change.png"
    Image.fromarray(values).save(path)
    tensor = torch.from_numpy(values.copy()).permute(2, 0, 1)
    spaces = (T.RandAugment()._augmentation_space(31, (80, 96)), T.TrivialAugmentWide()._augmentation_space(31))
    wrong = 0
    for number, name in enumerate(OPERATIONS):
        most = 0.0
        for space in spaces:
            magnitudes, signed = space[name]
            for magnitude in ({0.0} if magnitudes.ndim == 0 else set(magnitudes[::3].tolist())):
                for sign in (1, -1) if signed else (1,):
                    if name.startswith("Translate"):
                        magnitude = float(int(magnitude))
                    expected = _apply_op(tensor, name, sign * magnitude, T.InterpolationMode.NEAREST, None)
                    run("change", path, number, sign * magnitude, folder / "out")
                    ours = np.frombuffer((folder / "out").read_bytes(), np.uint8).reshape(80, 96, 3)
                    differs = np.abs(ours.astype(int) - expected.permute(1, 2, 0).numpy().astype(int)).max(-1) > 1
                    most = max(most, float(differs.mean()))
        print(f"change {name:12} at most {100 * most:.2f} % of the pixels differ by more than 1/255")
        wrong += most > (0.03 if name.startswith("Shear") else 0)  # half-way between two pixels either is right
    return wrong


def check_center(folder):
    wrong = 0
    for width, height, size, crop in ((500, 375, 224, 0.875), (375, 500, 224, 0.875), (180, 240, 224, 1.0),
                                      (1600, 1201, 224, 0.875), (97, 64, 64, 0.9)):
        path = folder / f"center_{width}.jpg"
        Image.fromarray(make_image(width, height, 3)).save(path, quality=92)
        run("center", path, size, crop, folder / "out")
        ours = np.frombuffer((folder / "out").read_bytes(), np.float32).reshape(size, size, 3)
        shown = T.Compose([T.Resize(round(size / crop)), T.CenterCrop(size)])(Image.open(path))
        difference = np.abs(ours * 255 - np.asarray(shown, dtype=np.float32))
        print(f"center {width} x {height} -> {size}: mean difference {difference.mean():.3f}/255, "
              f"largest {difference.max():.1f}/255")
        wrong += difference.mean() > 2
    return wrong


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wrong = check_decode(folder) + check_parts(folder) + check_center(folder) + check_changes(folder)
    print(f"images: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
