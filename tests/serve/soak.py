#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `lockstep serve` to flat memory and to its clients: soak.py [REQUESTS [CONNECTIONS [SLOW]]] [--record].

REQUESTS (default 100000) over CONNECTIONS (1000) that stay open, all at once; every answer must be right. Then SLOW (1000)
clients send a byte now and then while one client goes on. Memory after the first tenth and at the end must agree.
--record: rows of results/serve.json.
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

from served import LOCKSTEP, Served, record

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
    return {"requests": requests, "connections": connections, "seconds": round(took, 1), "memory_mib": [bytes_ >> 20 for _, bytes_ in memory]}


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

    async def hung_up(reader):
        """Nothing was said. A byte that is on its way when the server hangs up is answered by a reset."""
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True

    # Each listens from its first byte on: a client that goes on writing forgets that it was hung up on in order.
    ends = [asyncio.create_task(hung_up(reader)) for reader, _ in slow]
    drips = [asyncio.create_task(drip(*pair)) for pair in slow]
    # In this order: somebody else is answered, then those who are slow are let go. 10 s are between the two.
    await latency(server, image, 1)
    assert not any(end.done() for end in ends), "the answer waited until slow clients were let go"
    beside = await latency(server, image)
    assert all(await asyncio.wait_for(asyncio.gather(*ends), 300))  # 10 s after their first byte
    is_over.set()
    await asyncio.gather(*drips)
    return {"slow_clients": number, "answer_ms": round(1e3 * before, 3), "answer_beside_slow_clients_ms": round(1e3 * beside, 3)}


def main():
    given = [word for word in sys.argv[1:] if word != "--record"]
    requests, connections, slow = (int(word) for word in (*given, *("100000", "1000", "1000")[len(given):]))
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
        if "--record" in sys.argv:
            record("soak: every answer right, memory after each tenth", [{"model": "smallcnn", **many, **few, "command": "tests/serve/soak.py --record"}])
        print(f"soak.py: {many['requests']} requests over {many['connections']} connections in {many['seconds']:.0f} s "
              f"({many['requests'] / many['seconds']:.0f}/s), memory {' '.join(map(str, many['memory_mib']))} MiB; one answer "
              f"{few['answer_ms']} ms, beside {slow} slow clients {few['answer_beside_slow_clients_ms']} ms; all were let go")


if __name__ == "__main__":
    main()
