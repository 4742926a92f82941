# SPDX-License-Identifier: Apache-2.0
"""One call of an operator in the forecast's words: kind, number type, FLOPs, bytes, sizes. As lockstep/trace/operator.cpp
does it for our own step; the oracle tests/oracles/record.py holds the two against each other."""
import math

import torch

BY_BEGINNING = (
    ("_scaled_dot_product_", "attention"), ("_flash_attention", "attention"), ("_efficient_attention", "attention"),
    ("_fused_", "optimizer"), ("_foreach_norm", "reduction"), ("_foreach_copy", "copy"), ("_foreach_zero", "copy"),
    ("max_pool2d", "pooling"), ("max_pool3d", "pooling"), ("avg_pool", "pooling"), ("adaptive_", "pooling"),
    ("_adaptive_", "pooling"), ("empty", "view"), ("new_empty", "view"), ("index", "indexing"),
    ("embedding", "indexing"), ("scatter", "indexing"), ("linalg_vector_norm", "reduction"))

BY_NAME = {name: kind for kind, names in {
    "matmul": "mm addmm bmm baddbmm addbmm addmv mv dot _addmm_activation",
    "convolution": "convolution _convolution cudnn_convolution _conv_depthwise2d _slow_conv2d_forward",
    "convolution_weight_gradient": "convolution_backward",
    "batch_norm": "native_batch_norm cudnn_batch_norm _batch_norm_with_update _native_batch_norm_legit "
                  "_batch_norm_no_update",
    "batch_norm_gradient": "native_batch_norm_backward cudnn_batch_norm_backward batch_norm_backward",
    "layer_norm": "native_layer_norm native_group_norm",
    "layer_norm_gradient": "native_layer_norm_backward native_group_norm_backward",
    "softmax": "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data logsumexp",
    "reduction": "sum mean norm amax amin argmax argmin max min all any var_mean var std prod cumsum topk sort "
                 "nll_loss_forward nll_loss_backward _amp_foreach_non_finite_check_and_unscale_",
    "copy": "copy_ _to_copy clone cat stack fill_ zero_ zeros zeros_like ones full new_zeros ones_like "
            "constant_pad_nd full_like arange new_full repeat new_ones slice_backward select_backward scalar_tensor",
    "indexing": "gather roll flip masked_select nonzero take masked_fill_",
    "random": "bernoulli_ bernoulli native_dropout uniform_ normal_ rand randn randperm random_ exponential_",
    "view": "lift_fresh resize_ set_ record_stream is_same_size resize_as_ detach alias",
    "host": "_local_scalar_dense is_pinned _pin_memory equal",
}.items() for name in names.split()}

PRODUCTS = {"matmul", "convolution", "attention", "attention_gradient", "convolution_input_gradient",
            "convolution_weight_gradient"}
ONLY_WRITES = {"copy_", "zero_", "fill_", "_foreach_copy_", "_foreach_zero_", "uniform_", "normal_", "random_",
               "bernoulli_"}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.float64: "fp64"}


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)


def _bytes(value):
    total = 0
    for tensor in tensors_of(value):
        elements = 1
        for size, stride in zip(tensor.shape, tensor.stride()):
            elements *= size if stride != 0 or size == 0 else 1  # an expanded tensor is read from fewer bytes
        total += elements * tensor.element_size()
    return total


def kind_of(func):
    name = func._schema.name.rpartition("::")[2]
    if name in BY_NAME:
        return BY_NAME[name]
    if any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns):
        return "view"
    for begins, kind in BY_BEGINNING:
        if name.startswith(begins):
            gradient = "backward" in name and kind in ("attention", "pooling")
            return kind + "_gradient" if gradient else kind
    return "elementwise"


class Call:
    """What the forecast wants to know of one part of a call."""

    def __init__(self, name, kind):
        self.name, self.kind, self.type = name, kind, "fp32"
        self.flops = self.bytes = 0
        self.launches = 0 if kind in ("view", "host") else 1
        self.shape = ()
        self.layout = ""  # of a convolution's images, where it can be told
        self.sides = 0  # of a convolution: 2 for images, 3 for volumes

    def by_largest(self, value):
        for tensor in tensors_of(value):
            if tensor.numel() > (math.prod(self.shape) if self.shape else -1):
                self.shape = tuple(tensor.shape)
                self.type = TYPES.get(tensor.dtype, "integer")

    def product(self, shape, flops, tensor, tf32=False):
        self.shape, self.flops = tuple(shape), flops
        self.type = TYPES.get(tensor.dtype, "integer")
        if tf32 and self.type == "fp32" and tensor.device.type == "cuda":
            self.type = "tf32"

    def key(self):
        return (self.name, self.kind, self.type, self.flops, self.bytes, self.launches, self.shape)


def _layout(image, weight):
    """What cuDNN is told: channels last where image or weight is; those of one pixel or channel are both."""
    channels_last = CHANNELS_LAST[image.dim()]
    found = ""
    for tensor in (image, weight):
        last, plain = tensor.is_contiguous(memory_format=channels_last), tensor.is_contiguous()
        if last != plain:
            if last:
                return "channels_last"
            found = "contiguous"
    return found


def as_cudnn_lays(name, args, results):
    """A convolution's results in the layout of a GPU's. The simulation asks for a GPU that computes in bf16, and without one
    foretells the layout of another library, contiguous, for channels-last images."""
    if name == "aten::convolution":
        image, weight = args[:2]
        results = [results]
    elif name == "aten::convolution_backward":
        image, weight = args[1:3]
    else:
        return results
    if image.device.type == "cuda" and image.dim() in CHANNELS_LAST and _layout(image, weight) == "channels_last":
        form = CHANNELS_LAST[image.dim()]
        results = [torch.empty_like(t, memory_format=form) if t is not None and t.dim() == image.dim() and
                   not t.is_contiguous(memory_format=form) else t for t in results]
    return results[0] if name == "aten::convolution" else tuple(results)


def _each(value, sides, otherwise):
    """One number for each side: lists of one stand for all."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    values = values or [otherwise]
    return values * sides if len(values) == 1 else values


def _describe_convolution(call, named, image, weight):
    """Of one, two or three sides. A volume's depth counts as rows, a line as one row; kernels likewise."""
    sides = image.dim() - 2
    if sides < 1 or weight.dim() != image.dim():
        return
    call.sides = sides
    if sides in (2, 3):
        call.layout = _layout(image, weight)
    batch, channels, *sizes = image.shape
    kernel, groups = list(weight.shape[2:]), named["groups"]
    stride, padding, dilation = (_each(named[k], sides, 0 if k == "padding" else 1)
                                 for k in ("stride", "padding", "dilation"))
    if named.get("transposed"):  # weight: [in, out of a group, ...]; every pixel of the input meets the whole kernel
        out, pixels, per_pixel = weight.shape[1] * groups, math.prod(sizes), channels * weight.shape[1]
    else:
        out, per_group = weight.shape[:2]
        pixels = math.prod((size + 2 * p - d * (k - 1) - 1) // s + 1
                           for size, p, d, k, s in zip(sizes, padding, dilation, kernel, stride))
        per_pixel = out * per_group
    flops = 2 * batch * pixels * per_pixel * math.prod(kernel)
    rows, kernel_rows = math.prod(sizes[:-1]), math.prod(kernel[:-1])
    shape = (batch, channels, rows, sizes[-1], out, kernel_rows, kernel[-1], stride[0], groups)
    call.product(shape, flops, image, torch.backends.cudnn.allow_tf32)


def _describe_matmul(call, values):
    matrices = [tensor for value in values for tensor in tensors_of(value)]
    if len(matrices) < 2:
        return
    a, b = matrices[-2:]
    batch, m = a.shape[0] if a.dim() == 3 else 1, a.shape[-2] if a.dim() >= 2 else 1
    n = b.shape[-1] if b.dim() >= 2 else 1
    call.product((batch, m, n, a.shape[-1]), 2 * batch * m * n * a.shape[-1], a, torch.backends.cuda.matmul.allow_tf32)


def _describe_attention(call, named):
    query, key = named.get("query"), named.get("key")
    if query is None or query.dim() != 4:
        return
    batch, heads, tokens, head = query.shape
    one = 2 * batch * heads * tokens * key.shape[2] * head
    call.product((batch, heads, tokens, key.shape[2], head), one * (2 if call.kind == "attention" else 5), query)


def _convolution_gradients(name, named):
    parts = []
    gradient, image, weight = named["grad_output"], named["input"], named["weight"]
    mask = named.get("output_mask") or [True, True, True]
    for wanted, kind, other in ((mask[0], "convolution_input_gradient", weight),
                                (mask[1], "convolution_weight_gradient", image)):
        if wanted:
            call = Call(name, kind)
            call.bytes = _bytes(gradient) + _bytes(other)
            _describe_convolution(call, named, image, weight)
            parts.append(call)
    return parts


def describe(func, args, kwargs, results):
    """The parts of a call: one, but two for a convolution_backward that makes both gradients."""
    schema, kind = func._schema, kind_of(func)
    short = schema.name.rpartition("::")[2]
    named = {a.name: (args[i] if i < len(args) else kwargs.get(a.name, a.default_value))
             for i, a in enumerate(schema.arguments)}
    if kind == "convolution_weight_gradient":
        parts = _convolution_gradients(schema.name, named)
    else:
        call = Call(schema.name, kind)
        parts = [call]
        for argument in schema.arguments:
            value = named[argument.name]
            if call.launches:
                written = argument.alias_info is not None and argument.alias_info.is_write
                call.bytes += _bytes(value) * (written + (not (written and short in ONLY_WRITES)))
            if kind not in PRODUCTS:
                call.by_largest(value)
        if kind == "convolution":
            _describe_convolution(call, named, named.get("input", args[0]), named["weight"])
        elif kind == "matmul":
            _describe_matmul(call, [named[a.name] for a in schema.arguments])
        elif kind in ("attention", "attention_gradient"):
            _describe_attention(call, named)
    _add_results(parts, schema, results)
    return parts


def _add_results(parts, schema, results):
    results = results if isinstance(results, (list, tuple)) and len(schema.returns) > 1 else [results]
    for i, (returned, value) in enumerate(zip(schema.returns, results)):
        if returned.alias_info is not None or not parts:
            continue
        gradients = len(parts) == 2 or parts[0].kind == "convolution_input_gradient"
        part = parts[-1] if gradients and i > 0 else parts[0]
        if part.launches:
            part.bytes += _bytes(value)
            if part.kind not in PRODUCTS:
                part.by_largest(value)
