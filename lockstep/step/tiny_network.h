// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include "lockstep/model/network.h"
#include "lockstep/step/step.h"

// A network and batches small enough for tests that take thousands of steps.
namespace lockstep::step::tiny {

constexpr int64_t kClasses = 3;
constexpr int64_t kSize = 8;

inline model::Network network(const std::string& name = "smallcnn") {
  at::set_num_threads(1);  // a pool of threads costs more than it computes here
  spec::Model model;
  model.name = name;
  model.classes = kClasses;
  model.width = 4;
  return model::make_network(model, kSize, /*seed=*/7);
}

// Rows [start, start + rows) of an endless, fixed dataset.
inline Samples samples(int64_t start, int64_t rows, int64_t global_size, int64_t step = 0) {
  const int64_t pixels = 3 * kSize * kSize;
  const at::Tensor values =
      (at::arange(rows * pixels, at::kFloat).add(static_cast<double>(start * pixels)) * 0.37).sin();
  const at::Tensor targets = at::arange(start, start + rows, at::kLong).remainder(kClasses);
  return {step, 0, global_size, {{"image", values.view({rows, 3, kSize, kSize})}, {"label", targets}}};
}

}  // namespace lockstep::step::tiny
