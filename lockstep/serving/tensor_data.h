// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::serving {

// The values of one "data" array, nested or not, in order.
struct TensorData {
  std::vector<float> numbers = {};
  std::vector<std::string> words = {};
};

struct LiftedDocument {
  std::string document;  // with the index into `data` in place of each array
  std::vector<TensorData> data;
};

// Takes the values of tensors, {"inputs": [{"data": [...]}]}, out of a JSON text: as JSON values, 150,000 pixels would
// need a hundred times the memory of their text. What else is in the text is left for the parser, also what is wrong
// with it. User error for an array that is none, or holds other things than numbers or strings.
LiftedDocument lift_tensor_data(std::string_view json);

}  // namespace lockstep::serving
