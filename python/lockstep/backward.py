# SPDX-License-Identifier: Apache-2.0
"""Autograd's way back, in Python.

The real engine asks the CUDA driver for its streams as soon as a tensor says that it is on a GPU, simulated or not. So
that a step can be recorded where there is none, this one walks the same graph in the same order: the node with the
highest sequence number first, gradients of leaves at once. What a node saved is let go when it has run.
"""
import heapq
import itertools
import sys

import torch


class SavedTensors:
    """Holds what nodes save, so that it can be let go as soon as they have run."""

    def __init__(self):
        self.unpacked = []

    def pack(self, tensor):
        return [tensor]

    def unpack(self, holder):
        if not holder:
            raise RuntimeError("Trying to backward through the graph a second time: pass retain_graph=True")
        self.unpacked.append(holder)
        return holder[0]

    def release(self, keep):
        if not keep:
            for holder in self.unpacked:
                holder.clear()
        self.unpacked.clear()

    def hooks(self):
        return torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)


def _is_leaf(node):
    return type(node).__name__ == "AccumulateGrad"


def _count_edges(roots):
    counts, stack, seen = {}, list(roots), set(roots)
    while stack:
        for child, _ in stack.pop().next_functions:
            if child is not None:
                counts[child] = counts.get(child, 0) + 1
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
    return counts


def _fit(gradient, wanted):
    """What the engine does to a gradient before it hands it on: sums over broadcast dimensions, casts."""
    if gradient is None or wanted is None:
        return gradient
    if gradient.shape != wanted.shape:
        gradient = gradient.sum_to_size(wanted.shape)
    return gradient if gradient.dtype == wanted.dtype else gradient.to(wanted.dtype)


def _alone(tensor, references):
    """Nobody but the caller (so many references) holds the tensor: it may be taken over."""
    return sys.getrefcount(tensor) <= references + 2  # our name, getrefcount's argument


def _same_layout(a, b):
    return all(x == y for size, x, y in zip(a.shape, a.stride(), b.stride()) if size != 1)


def _accumulate(variable, gradient, alone):
    """AccumulateGrad: takes an unshared gradient of the variable's layout over, copies any other."""
    if variable.grad is not None:
        variable.grad.add_(gradient)
    elif not _same_layout(variable, gradient):
        variable.grad = torch.empty_like(variable).copy_(gradient)
    else:
        variable.grad = gradient.detach() if alone else gradient.clone()


def _by_edge(node, results):
    """A function's own backward answers for every argument, the graph has edges for tensors alone: the arguments that want
    a gradient are, in their order, the edges that lead somewhere."""
    wanted = iter([result for result, needed in zip(results, node.needs_input_grad) if needed])
    return [None if child is None else next(wanted, None) for child, _ in node.next_functions]


class Engine:
    def __init__(self, saved, keep_graph):
        self.saved, self.keep = saved, keep_graph
        self.buffers, self.heap, self.order = {}, [], itertools.count()
        self.missing = {}

    def _push(self, node):
        rank = (0, 0) if _is_leaf(node) else (1, -node._sequence_nr())
        heapq.heappush(self.heap, (rank, next(self.order), node))

    def _hand_on(self, edge, gradients, index):
        child, slot = edge
        if child is None:
            return
        gradient, gradients[index] = gradients[index], None
        if gradient is not None:
            slots = self.buffers.setdefault(child, {})
            if slots.get(slot) is None:
                slots[slot] = gradient
            elif _alone(slots[slot], 1) and slots[slot]._base is None:
                slots[slot].add_(gradient)
            else:
                slots[slot] = slots[slot] + gradient
        self.missing[child] -= 1
        if self.missing[child] == 0:
            self._push(child)

    def _call(self, node, inputs):
        own = isinstance(node, torch.autograd.function.BackwardCFunction)
        results = node.apply(*inputs) if own else node(*inputs)
        inputs.clear()
        results = list(results) if isinstance(results, tuple) else [results]
        if own:
            results = _by_edge(node, results)
        for i, (child, slot) in enumerate(node.next_functions):
            if child is not None and slot < len(child._input_metadata):
                results[i] = _fit(results[i], child._input_metadata[slot])
        return results

    def run(self, roots):
        """roots: (node, slot, gradient)."""
        self.missing = _count_edges([node for node, _, _ in roots])
        for node, slot, gradient in roots:
            self.buffers.setdefault(node, {})[slot] = gradient
        for node in {node: None for node, _, _ in roots}:
            if not self.missing.get(node):
                self._push(node)
        roots.clear()
        gradient = node = None
        while self.heap:
            _, _, node = heapq.heappop(self.heap)
            slots = self.buffers.pop(node, {})
            if not any(g is not None for g in slots.values()):
                gradients = [None] * len(node.next_functions)
            elif _is_leaf(node):
                gradient = slots.pop(0)
                alone = _alone(gradient, 1)
                with torch.no_grad():
                    _accumulate(node.variable, gradient, alone)
                gradient = None
                continue
            else:
                inputs = [slots.get(i) for i in range(len(node._input_metadata))]
                slots.clear()
                gradients = self._call(node, inputs)
            self.saved.release(self.keep)
            for i, edge in enumerate(node.next_functions):
                self._hand_on(edge, gradients, i)
            node = None
        left = [node.name() for node, edges in self.missing.items() if edges > 0]
        if left:
            raise RuntimeError(f"lockstep.record: {len(left)} nodes of the graph got no gradient, the first is {left[0]}: "
                               "this is a fault of lockstep.record, please report it with the network")


def run_backward(saved, tensors, gradients, keep_graph):
    """torch.autograd.backward for tensors with a graph."""
    roots = []
    for tensor, gradient in zip(tensors, gradients):
        if gradient is None:
            gradient = torch.ones_like(tensor, memory_format=torch.preserve_format)
        node = tensor.grad_fn or torch.autograd.graph.get_gradient_edge(tensor).node
        roots.append((node, tensor.output_nr, gradient))
        gradient = None
    with torch.no_grad():
        Engine(saved, keep_graph).run(roots)
