# SPDX-License-Identifier: Apache-2.0
"""Writes recordings (docs/formats/recording.md). Plain Python: needs nothing."""
import hashlib
import json
import os

MEMORY_CLASSES = {"weights": "w", "gradients": "g", "optimizer": "o", "averages": "v", "activations": "a",
                  "workspaces": "s", "buckets": "b", "inputs": "i", "other": "x"}
UNIT = 512  # addresses are multiples of it
LINE_WIDTH = 110


def _seal(path, kind, header, lines):
    head = {"format": "lockstep recording", "version": 1, "kind": kind, **header}
    body = "\n".join([json.dumps(head, separators=(",", ":")), *lines]) + "\n"
    raw = body.encode("ascii")
    temporary = f"{path}.writing"
    with open(temporary, "wb") as file:
        file.write(raw + b"sha256 " + hashlib.sha256(raw).hexdigest().encode() + b"\n")
    os.replace(temporary, path)


def write_step(path, header, operators, events):
    """operators: (name, kind, type, phase, flops, bytes, launches, block, shape); events: finished lines."""
    lines = []
    for name, kind, number, phase, flops, moved, launches, block, shape in operators:
        sizes = "".join([" ", ",".join(map(str, shape))]) if shape else ""
        lines.append(f"o {name} {kind} {number} {phase} {_number(flops)} {_number(moved)} {launches} {block}{sizes}")
    lines += events
    num_events = sum(not line.startswith("t ") for line in events)
    _seal(path, "step", {**header, "operators": len(operators), "events": num_events}, lines)


def _number(value):
    return str(int(value)) if value == int(value) else repr(float(value))


class AllocatorStream:
    """Collects the events of an allocator in their order: blocks and streams are numbered, the two halves of a free are
    joined where nothing lies between them."""

    def __init__(self):
        self.events = []  # (letter, size or block, address, stream)
        self.block_at = {}
        self.streams = {}
        self.num_blocks = 0

    def _stream(self, handle):
        return self.streams.setdefault(handle, len(self.streams))

    def block(self, letter, address, size, stream):
        """'a': allocated; 'b': was there before."""
        self.block_at[address] = self.num_blocks
        self.events.append((letter, size, address, self._stream(stream)))
        self.num_blocks += 1

    def free_requested(self, address, stream):
        self.events.append(("q", self.block_at[address], None, self._stream(stream)))

    def free_completed(self, address, stream):
        block = self.block_at.pop(address)
        if self.events and self.events[-1][:2] == ("q", block):
            self.events[-1] = ("f", *self.events[-1][1:])
        else:
            self.events.append(("c", block, None, self._stream(stream)))

    def segment(self, letter, address, size, stream):
        """'S', 'F': allocated, freed; 'M', 'U': mapped, unmapped; 'p', 'P': small, large, was there before."""
        self.events.append((letter, size, address, self._stream(stream)))

    def out_of_memory(self, size, stream):
        self.events.append(("o", size, None, self._stream(stream)))

    def write(self, path, header):
        base = min((address for _, _, address, _ in self.events if address is not None), default=0)
        tokens, stream, blocks = [], 0, 0
        for letter, number, address, of_stream in self.events:
            if of_stream != stream:
                stream = of_stream
                tokens.append(f"~{stream:x}")
            number = blocks - number if letter in "fqc" else number
            position = "" if address is None else f"@{(address - base) // UNIT:x}"
            tokens.append(f"{letter}{number:x}{position}")
            blocks += letter in "ab"
        _seal(path, "allocator", {**header, "base": base, "events": len(self.events)}, _wrap(tokens))


def _wrap(tokens):
    lines, line, width = [], [], 0
    for token in tokens:
        if width + len(token) >= LINE_WIDTH:
            lines.append(" ".join(line))
            line, width = [], 0
        line.append(token)
        width += len(token) + 1
    return lines + ([" ".join(line)] if line else [])
