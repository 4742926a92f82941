// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace lockstep::kernel {

// The four maps of a pyramid, of strides 4, 8, 16 and 32: [images, channels, height, width].
using Pyramid = std::array<at::Tensor, 4>;

struct RoiOptions {
  int64_t size = 7;      // bins in each direction
  int64_t sampling = 2;  // samples of a bin in each direction
};

// ROIAlign (He et al. 2017, arXiv 1703.06870), as torchvision has it with aligned=false: boxes float [images, boxes, 4]
// in pixels of the image, each read from the map that its size asks for. [images * boxes, channels, size, size],
// channels last; whatever the boxes, this shape. Differentiable in the maps; the CPU's gradient is added up in the
// order of the boxes, the GPU's in any order.
at::Tensor roi_align(const Pyramid& maps, const at::Tensor& boxes, const RoiOptions& options);

}  // namespace lockstep::kernel
