// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/weights_file.h"

namespace lockstep::base {

struct WeightsFile::Content {
  MappedFile file;
  std::vector<TensorView> tensors;
};

WeightsFile::WeightsFile(const Path& path) : content_(std::make_unique<Content>(Content{MappedFile(path), {}})) {
  content_->tensors = parse_safetensors(content_->file.bytes(), path.string()).tensors;
}

WeightsFile::~WeightsFile() = default;
WeightsFile::WeightsFile(WeightsFile&&) noexcept = default;

const std::vector<TensorView>& WeightsFile::tensors() const {
  return content_->tensors;
}

}  // namespace lockstep::base
