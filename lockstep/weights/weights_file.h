// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/weights/safetensors.h"

namespace lockstep::weights {

// A file of named tensors, recognised by its content: safetensors, or a PyTorch checkpoint (.pth, .pt, .bin; zip or
// the older plain pickles). Nothing in the file is ever executed. Views stay valid as long as the object.
class WeightsFile {
 public:
  explicit WeightsFile(const base::Path& path);
  ~WeightsFile();
  WeightsFile(WeightsFile&&) noexcept;
  WeightsFile& operator=(WeightsFile&&) = delete;
  const std::vector<TensorView>& tensors() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace lockstep::weights
