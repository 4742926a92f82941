# SPDX-License-Identifier: Apache-2.0
"""Turns a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot) into an allocator recording, which `lockstep bench
replay` replays under other GPU sizes and settings. Plain Python: needs no torch."""
import pickle

from . import recording

SEGMENTS = {"segment_alloc": "S", "segment_free": "F", "segment_map": "M", "segment_unmap": "U"}


class _PlainUnpickler(pickle.Unpickler):
    """A snapshot holds plain values: nothing in it may be called."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}: a memory snapshot holds plain values only")


def _read(source):
    if isinstance(source, dict):
        return source
    with open(source, "rb") as file:
        return _PlainUnpickler(file).load()


def _before(trace, segments):
    """Blocks and segments that were there before the first entry: what is freed, or alive at the end, and was never
    allocated within the trace."""
    blocks, made, maps, new = {}, set(), {}, set()
    for entry in trace:
        action, address = entry["action"], entry["addr"]
        if action == "alloc":
            made.add(address)
        elif action == "free_requested":
            if address not in made:
                blocks[address] = (entry["size"], entry.get("stream", 0))
            made.discard(address)
        elif action in ("segment_alloc", "segment_map"):
            new.add(address)
        elif action in ("segment_free", "segment_unmap") and address not in new:
            maps[address] = (entry["size"], entry.get("stream", 0))
    for segment in segments:
        if segment["address"] not in new:
            maps[segment["address"]] = (segment["total_size"], segment.get("stream", 0))
        address = segment["address"]
        for block in segment["blocks"]:
            at = block.get("address", address)
            if block["state"].startswith("active") and at not in made:
                blocks.setdefault(at, (block.get("requested_size", block["size"]), segment.get("stream", 0)))
            address += block["size"]
    return blocks, maps


def from_snapshot(source, path, *, device=0, title="", precision="", optimizer="", batch=0, steps=0, capacity=0,
                  gpu="", peaks=None):
    """Writes the allocator's history in `source` (a file, or what torch.cuda.memory._snapshot() returned) to `path`.

    The history should begin with the process (torch.cuda.memory._record_memory_history() before the first tensor); what
    was there before it is kept at its place, as far as the trace shows it. gpu, capacity: its name and bytes. peaks: {"allocated", "active", "reserved", "requested"} as torch counted.
    """
    snapshot = _read(source)
    trace = snapshot["device_traces"][device]
    segments = [s for s in snapshot.get("segments", []) if s.get("device", 0) == device]
    settings = snapshot.get("allocator_settings", {})
    small = {s["address"]: s.get("segment_type") == "small" for s in segments}
    stream = recording.AllocatorStream()
    blocks, maps = _before(trace, segments)
    for address, (size, handle) in sorted(maps.items()):
        is_small = small.get(address, size <= 2 << 20)
        stream.segment("p" if is_small else "P", address, size, handle)
    for address, (size, handle) in sorted(blocks.items()):
        stream.block("b", address, size, handle)
    for entry in trace:
        action, address, handle = entry["action"], entry["addr"], entry.get("stream", 0)
        if action == "alloc":
            stream.block("a", address, entry["size"], handle)
        elif action == "free_requested":
            stream.free_requested(address, handle)
        elif action == "free_completed":
            stream.free_completed(address, handle)
        elif action in SEGMENTS:
            stream.segment(SEGMENTS[action], address, entry["size"], handle)
        elif action == "oom":
            stream.out_of_memory(entry["size"], handle)
    peaks = peaks or {}
    stream.write(path, {
        "source": "snapshot", "title": title, "device": gpu, "precision": precision, "optimizer": optimizer,
        "batch": batch, "steps": steps,
        "settings": {"expandable_segments": bool(settings.get("expandable_segments", False)),
                     "max_split_size": max(0, settings.get("max_split_size", 0) or 0) % (1 << 62),
                     "roundup_power2_divisions": _divisions(settings), "allowed": 0, "capacity": capacity,
                     "garbage_collection_threshold": settings.get("garbage_collection_threshold", 0) or 0},
        "peaks": {k: peaks.get(k, 0) for k in ("allocated", "active", "reserved", "requested")}})


def _divisions(settings):
    given = settings.get("roundup_power2_divisions", {}) or {}
    values = set(given.values()) if isinstance(given, dict) else {given}
    values.discard(0)
    if len(values) > 1:
        raise ValueError(f"roundup_power2_divisions by size ({given}) cannot be replayed: one number for all sizes can")
    return values.pop() if values else 0
