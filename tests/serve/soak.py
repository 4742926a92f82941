#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `lockstep serve` to flat memory and to its clients: soak.py [REQUESTS [CONNECTIONS [SLOW]]].

REQUESTS (default 100000) over CONNECTIONS (1000) that stay open, all at once; every answer must be right. Then SLOW (1000)
clients send a byte now and then while one client goes on. Memory after the first tenth and at the end must agree.
"""
import asyncio
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from served import LOCKSTEP, Served

GROWTH = 24 << 20  # bytes: what caches and the allocator may still take behind the first tenth
JOB = {"name": "shapes", "data": {"train": "set/train", "image_size": 16, "threads": 1},
       "model": {"name": "smallcnn", "width": 4}, "training": {"global_batch": 8, "epochs": 1, "threads": 1}}


async def response(reader):
    """Status and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


def request(server, image):
    return (f"POST /predict?top=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
            f"Content-Length: {len(image)}\r\n\r\n").encode() + image


async def client(server, images, expected, todo, counts, at_once):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    while todo:
        i = todo.pop() % len(images)
        async with at_once:
            writer.write(request(server, images[i]))
            status, body = await response(reader)
        assert status == 200, (status, body)
        assert json.loads(body)["classes"][0]["name"] == expected[i], body
        counts.append(1)
    writer.close()


async def soak(server, images, expected, requests, connections):
    todo, counts, memory = list(range(requests)), [], []
    # As many at once as the queue takes: more would be refused, which is another test.
    at_once = asyncio.Semaphore(48)
    tasks = [asyncio.create_task(client(server, images, expected, todo, counts, at_once)) for _ in range(connections)]
    start, next_look = time.monotonic(), 0
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0.2)
        if len(counts) >= next_look:
            memory.append((len(counts), server.resident()))
            next_look += requests // 10
    for task in tasks:
        task.result()
    memory.append((len(counts), server.resident()))
    took = time.monotonic() - start
    assert len(counts) == requests
    early = next(bytes_ for done, bytes_ in memory if done >= requests // 10)
    assert memory[-1][1] - early < GROWTH, memory
    return (f"{requests} requests over {connections} connections in {took:.0f} s ({requests / took:.0f}/s), memory "
            + " ".join(f"{bytes_ / 2**20:.0f}" for _, bytes_ in memory) + " MiB")


async def latency(server, image, number=60):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    seconds = []
    for _ in range(number):
        start = time.perf_counter()
        writer.write(request(server, image))
        assert (await response(reader))[0] == 200
        seconds.append(time.perf_counter() - start)
    writer.close()
    return statistics.median(seconds)


async def slow_clients(server, image, number):
    """Each sends one byte of its head after the other; none may hold the server, all are let go."""
    before = await latency(server, image)
    slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(number)]
    is_over = asyncio.Event()

    async def drip(reader, writer):
        try:
            while not is_over.is_set():
                writer.write(b"G")
                await writer.drain()
                await asyncio.sleep(0.5)
        except ConnectionError:
            pass

    drips = [asyncio.create_task(drip(*pair)) for pair in slow]
    beside = await latency(server, image)
    for reader, _ in slow:  # hung up on, 10 s after their first byte
        assert await asyncio.wait_for(reader.read(), 60) == b""
    is_over.set()
    await asyncio.gather(*drips)
    return f"one answer {1e3 * before:.2f} ms, beside {number} slow clients {1e3 * beside:.2f} ms; all were let go"


def main():
    requests, connections, slow = (int(word) for word in (*sys.argv[1:], *("100000", "1000", "1000")[len(sys.argv) - 1:]))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, connections + slow + 256), hard))
    with tempfile.TemporaryDirectory(prefix="lockstep-soak-") as folder:
        os.chdir(folder)
        subprocess.run([LOCKSTEP, "prep", "--synthesize", "shapes", "--count", "60", "--classes", "3", "--to", "set"], check=True,
                       stdout=subprocess.DEVNULL)
        pathlib.Path("job.json").write_text(json.dumps(JOB))
        subprocess.run([LOCKSTEP, "train", "job.json", "--run", "run"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        files = sorted(path for path in pathlib.Path("set/train").rglob("*") if path.suffix in (".png", ".jpg"))
        said = json.loads(subprocess.run([LOCKSTEP, "predict", "run", *files, "--top", "1", "--json", "-"], check=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        expected = [image["classes"][0]["name"] for image in said["images"]]
        images = [path.read_bytes() for path in files]
        with Served("run") as server:
            many = asyncio.run(soak(server, images, expected, requests, connections))
            few = asyncio.run(slow_clients(server, images[0], slow))
            assert server.end() == 0, server.said()
            print(f"soak.py: {many}; {few}")


if __name__ == "__main__":
    main()
