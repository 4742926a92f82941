// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "lockstep/onnx/model.h"

namespace lockstep::onnx {

// For tests: output = image + weight + large.
struct SmallModel {
  std::vector<float> weight = {1, 2};
  std::vector<float> large = std::vector<float>(2000, 3);
  Model model;

  SmallModel() {
    model.name = "small";
    model.nodes = {{"Add", {"image", "weight"}, {"sum"}, {}}, {"Add", {"sum", "large"}, {"output"}, {}}};
    model.tensors = {{"weight", Type::float32, {2}, std::as_bytes(std::span(weight))},
                     {"large", Type::float32, {1000, 2}, std::as_bytes(std::span(large))}};
    model.inputs = {{"image", Type::float32, {"batch", 2}}};
    model.outputs = {{"output", Type::float32, {1000, 2}}};
    model.metadata = {{"lockstep.task", "regress"}};
  }
  SmallModel(const SmallModel&) = delete;
  SmallModel& operator=(const SmallModel&) = delete;
};

}  // namespace lockstep::onnx
