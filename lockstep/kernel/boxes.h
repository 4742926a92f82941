// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

// Boxes: float [..., 4], x1 y1 x2 y2 in pixels. These operators have no gradient, fixed shapes, and wait for no device.
// Every operator of this room is "lockstep::<name>", has a CPU kernel that gives the same bits whatever the threads,
// and a Meta kernel; its CUDA kernel comes with the CUDA plug-in (plugins/cuda).
namespace lockstep::kernel {

struct Grid {  // of one map of a pyramid
  int64_t height = 0;
  int64_t width = 0;
};

// The anchors of maps of an image of these pixels: level i has anchors of area (32 << i)^2, height / width 1/2, 1 and
// 2, around (column, row) * stride, rounded as torchvision does. [anchors, 4], map by map, row by row; on the device of
// `like`.
at::Tensor anchors(const at::Tensor& like, const std::vector<Grid>& grids, int64_t height, int64_t width);
constexpr int64_t kAnchorsPerCell = 3;

struct BoxCoder {  // what a network's deltas of x, y, width and height are multiplied by
  double position = 1;
  double size = 1;
};

// boxes [images, boxes, 4], moved by deltas [images, boxes, each, 4] and cut off at shown [images, 2] (height, width):
// [images, boxes, each, 4].
at::Tensor decode_boxes(const at::Tensor& boxes, const at::Tensor& deltas, const at::Tensor& shown,
                        const BoxCoder& coder);
// The deltas that turn boxes into wanted, both [images, boxes, 4]; 0 where one of them has no area.
at::Tensor encode_boxes(const at::Tensor& boxes, const at::Tensor& wanted, const BoxCoder& coder);

}  // namespace lockstep::kernel
