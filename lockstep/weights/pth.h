// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "lockstep/weights/safetensors.h"

namespace lockstep::weights {

// The tensors of a PyTorch checkpoint. Views point into the file, or into `copies` where the file holds a tensor
// transposed or otherwise strided.
struct PthTensors {
  std::vector<TensorView> tensors;  // in the order of the file
  std::deque<std::vector<std::byte>> copies;
};

bool looks_like_pth(std::span<const std::byte> content);

// Reads {name: tensor}, also one level down under "state_dict", "model" or "model_state_dict", as torch.save writes
// it: a zip archive (torch >= 1.6) or a row of pickles. Executes nothing; anything but tensors and plain values is
// refused by name. `source` names the file in errors.
PthTensors parse_pth(std::span<const std::byte> content, const std::string& source);

}  // namespace lockstep::weights
