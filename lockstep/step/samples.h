// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/loader/loader.h"

namespace lockstep::step {

// One rank's share of one global batch, as tensors on the device.
struct Samples {
  int64_t step = 0;         // of the run
  int64_t epoch = 0;        // with `step`: what random choices depend on
  int64_t global_size = 0;  // rows over all ranks, also those without a target
  at::Tensor values;        // [rows, 3, size, size] images, or what block `from` takes
  at::Tensor targets;       // int64 [rows]; -1: no part in anything
  size_t from = 0;          // the first block to run

  int64_t rows() const { return targets.size(0); }
  Samples slice(int64_t start, int64_t rows) const;  // shares the memory
};

// The batch's pixels as they are, over its own memory, which must live on: [rows, size, size, 3], fp32, bf16 or uint8.
at::Tensor host_pixels(const loader::Batch& batch);

// As the network takes them: [rows, 3, size, size], channels last. Bytes become normalised floats; others are only
// looked at another way.
at::Tensor shown_pixels(const at::Tensor& pixels, const image::Normalisation& normalisation);

// A batch's pixels, in main memory, on the device and as the network takes them.
at::Tensor pixels_on(at::Device device, const at::Tensor& pixels, const image::Normalisation& normalisation);

at::ScalarType pixel_type(spec::Pixels pixels);

// The images as a channels-last tensor over the batch's own memory (on the CPU: no copy; the batch must live on), or of
// bytes a new one.
Samples to_samples(const loader::Batch& batch, at::Device device);

}  // namespace lockstep::step
