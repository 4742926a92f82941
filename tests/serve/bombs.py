#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files that promise or hold far more than they are, sent to `lockstep serve`: bombs.py RUN JPEG.

A row is a file and the status that its answer must have; the answer comes in time, the server's memory stays within a bound
that none of these images needs, and the next client is served.
"""
import os
import pathlib
import struct
import sys
import urllib.error
import urllib.request
import zlib

from served import Served

MOST_MEMORY = 100 << 20  # beyond what the server has before; what the bombs hold is three times as much
MUCH = zlib.compress(bytes(300_000_000), 9)  # 290 kB
WEBP = bytes.fromhex("5249464624000000574542505650384c170000002f3fc00f000750852257a1ff012021fc7faf45f43ff50300")  # 64 x 64, lossless


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, before=b"", data=zlib.compress(bytes(1000))):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def tiff(data=bytes(400), **tags):
    numbers = {"width": 256, "height": 257, "bits": 258, "compression": 259, "photometric": 262, "offsets": 273, "channels": 277,
               "rows": 278, "sizes": 279, "tile_width": 322, "tile_height": 323, "tile_offsets": 324, "tile_sizes": 325}
    usual = {"width": 64, "height": 64, "bits": 8, "compression": 1, "photometric": 1, "channels": 1}
    if "tile_width" not in tags:
        usual |= {"offsets": 200, "rows": 64, "sizes": len(data)}
    entries = sorted((numbers[name], value) for name, value in (usual | tags).items())
    directory = b"".join(struct.pack("<HHII", tag, 4, *(value if isinstance(value, tuple) else (1, value))) for tag, value in entries)
    head = struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + directory + bytes(4)
    return head.ljust(200, b"\0") + data


def larger_jpeg(file, side):
    at = max(file.find(b"\xff\xc0"), file.find(b"\xff\xc2"))
    return file[:at + 5] + struct.pack(">HH", side, side) + file[at + 9:]


def rows(jpeg):
    flat = zlib.compress(b"".join(b"\0" + bytes(24) for _ in range(8)))
    bits = int.from_bytes(WEBP[21:25], "little") | (1 << 28) - 1  # width and height less one, 14 bits each
    return [
        ("PNG of 60,000 x 60,000", 400, png(60000, 60000)), ("PNG as wide as can be told", 400, png(2**31 - 1, 1)),
        ("PNG of no size", 400, png(0, 8)), ("PNG with 300 MB of pixels for 8 x 8", 200, png(8, 8, data=MUCH)),
        ("PNG with 300 MB of colour profile", 200, png(8, 8, chunk(b"iCCP", b"x\0\0" + MUCH), flat)),
        ("PNG with 300 MB of text", 200, png(8, 8, chunk(b"zTXt", b"x\0\0" + MUCH), flat)),
        ("PNG with 100,000 notes", 200, png(8, 8, chunk(b"tEXt", b"a\0b") * 100_000, flat)),
        ("JPEG of 65,500 x 65,500", 400, larger_jpeg(jpeg, 65500)),
        ("WebP of 16,384 x 16,384", 400, WEBP[:21] + bits.to_bytes(4, "little") + WEBP[25:]), ("that WebP itself", 200, WEBP),
        ("TIFF of 60,000 x 60,000", 400, tiff(width=60000, height=60000, rows=60000)),
        ("TIFF of 4,000 channels", 400, tiff(width=8000, height=8000, bits=64, channels=4000)),
        ("TIFF in tiles of a million pixels each way", 400,
         tiff(tile_width=1 << 20, tile_height=1 << 20, tile_offsets=200, tile_sizes=100)),
        ("TIFF with 300 MB of pixels for 64 x 64", 200, tiff(MUCH, compression=8)),
        ("SVG that asks for a file", 400, b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>"),
    ]


def peak(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def ask(server, file, accept):
    headers = {"Authorization": f"Bearer {server.token}", "Accept": accept}
    try:
        with urllib.request.urlopen(urllib.request.Request(server.url + "/predict", file, headers), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def main():
    jpeg = pathlib.Path(sys.argv[2]).read_bytes()
    failures, files = 0, rows(jpeg)
    # Two arenas of malloc: what each keeps, times the cores of a machine, is not what is looked for.
    with Served(sys.argv[1], env=dict(os.environ, MALLOC_ARENA_MAX="2")) as server:
        assert ask(server, jpeg, "*/*")[0] == 200
        before = peak(server)
        for title, wanted, file in files:
            for accept in ("application/json", "image/jpeg"):  # what is drawn on is decoded as a whole
                status, said = ask(server, file, accept)
                if status != wanted:
                    failures += 1
                    print(f"FAIL {title}, {accept}: {status} instead of {wanted}: {said[:200]}")
            if peak(server) > before + MOST_MEMORY:
                failures += 1
                print(f"FAIL {title}: {(peak(server) - before) >> 20} MiB")
        assert ask(server, jpeg, "*/*")[0] == 200
        more, code = (peak(server) - before) >> 20, server.end()
    print(f"bombs.py: {len(files)} files, {failures} failed, {more} MiB more memory, server: exit {code}")
    return 1 if failures or code else 0


if __name__ == "__main__":
    sys.exit(main())
