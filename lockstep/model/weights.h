// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/model/network.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::model {

struct LoadReport {
  std::vector<std::string> loaded;   // copied from the file
  std::vector<std::string> fresh;    // left as initialised: a classifier of another class count, what a trunk lacks
  std::vector<std::string> ignored;  // in the file, not in the network
};

// Copies parameters and buffers by name from a safetensors file or a PyTorch checkpoint. User error, before anything
// is changed, when a name is missing or a shape differs (tensor and both shapes named), except for the classifier.
LoadReport load_weights(Network& network, const base::Path& path);
// Likewise from tensors that lie somewhere else; `source` names it.
LoadReport load_weights(Network& network, const std::vector<weights::TensorView>& tensors, const std::string& source);

// All parameters and buffers as safetensors, atomically.
void save_weights(const Network& network, const base::Path& path, const weights::TensorMetadata& metadata = {});

}  // namespace lockstep::model
