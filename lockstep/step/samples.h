// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/loader/loader.h"
#include "lockstep/model/network.h"

namespace lockstep::step {

// One rank's share of one global batch, as tensors on the device.
struct Samples {
  int64_t step = 0;                    // of the run
  int64_t epoch = 0;                   // with `step`: what random choices depend on
  int64_t global_size = 0;             // rows over all ranks, also those that were not read
  model::NamedTensors fields;          // of the task, [rows, ...] each
  std::vector<uint8_t> was_read = {};  // by row; 0: could not be read, no part in anything. Empty: all were
  size_t from = 0;                     // the first block to run
  model::Bundle features = {};         // what it takes, where it is not the first of the network

  int64_t rows() const { return fields.begin()->tensor.size(0); }
  int64_t num_read() const;                          // rows that take part
  Samples slice(int64_t start, int64_t rows) const;  // shares the memory
};

at::ScalarType scalar_type(task::Element element);

// The values of a field as they lie in main memory, which must live on: [rows, ...]; an image [rows, height, width,
// channels].
at::Tensor host_values(const task::FieldValues& values, int64_t rows);

// As the network takes an image: [rows, channels, height, width], channels last. Bytes become normalised floats; others
// are only looked at another way.
at::Tensor shown_image(const at::Tensor& pixels, const image::Normalisation& normalisation);

// A field's values, in main memory as host_values() gives them, on the device and as the network takes them.
at::Tensor field_on(at::Device device, const task::Field& field, const at::Tensor& values,
                    const image::Normalisation& normalisation);

// On the CPU over the batch's own memory, where nothing must be computed: the batch must live on.
Samples to_samples(const loader::Batch& batch, at::Device device);

}  // namespace lockstep::step
