# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: operator by operator, as torch computes them where cuDNN is off.

With cuDNN a whole layer is one call, whose reserve and workspace no documentation tells. Without it a GPU runs products and
one fused cell a time step; torch can simulate that of LSTM, and here is that of GRU.
"""
import torch


def check_recurrent(module):
    """Stands for flatten_parameters(), which packs the weights for cuDNN as soon as a layer is made or moved."""
    if torch.backends.cudnn.enabled:
        raise RuntimeError(f"lockstep.record: torch.nn.{type(module).__name__} is not recorded as cuDNN computes it: the "
                           "whole layer is one call, whose memory is not simulated. With torch.backends.cudnn.enabled = "
                           "False, before the layer is made, it is recorded as torch then computes it; or measure the "
                           "step on a GPU and use lockstep.from_snapshot()")


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return hx.new_empty(hx.shape), hx.new_empty((hx.size(0), 5 * hx.size(1)))  # the kernel's workspace: 5 numbers a unit


def _gru_cell_backward(grad_hy, workspace, has_bias):
    rows, units = grad_hy.shape
    gates = [grad_hy.new_empty((rows, 3 * units)) for _ in range(2)]
    bias = [grad_hy.new_empty((3 * units,)) if has_bias else None for _ in range(2)]
    return (*gates, grad_hy.new_empty(grad_hy.shape), *bias)


_META = torch.library.Library("aten", "IMPL", "Meta")
for _name, _kernel in (("_thnn_fused_gru_cell", _gru_cell), ("_thnn_fused_gru_cell_backward", _gru_cell_backward)):
    if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{_name}", "Meta"):
        _META.impl(_name, _kernel)
