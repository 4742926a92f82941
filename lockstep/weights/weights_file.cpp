// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/weights_file.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/weights/pth.h"

namespace lockstep::weights {
namespace {

// Protocols 2 to 5 start so. A safetensors header of 640 bytes does too, but it has its brace at byte 8.
bool is_bare_pickle(std::span<const std::byte> bytes) {
  const bool pickle =
      bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] >= std::byte{2} && bytes[1] <= std::byte{5};
  return pickle && (bytes.size() <= 8 || bytes[8] != std::byte{'{'});
}

}  // namespace

struct WeightsFile::Content {
  base::MappedFile file;
  PthTensors read;
};

WeightsFile::WeightsFile(const base::Path& path)
    : content_(std::make_unique<Content>(Content{base::MappedFile(path), {}})) {
  const std::span<const std::byte> bytes = content_->file.bytes();
  if (looks_like_pth(bytes)) {
    content_->read = parse_pth(bytes, path.string());
  } else if (!is_bare_pickle(bytes)) {
    content_->read.tensors = parse_safetensors(bytes, path.string()).tensors;
  } else {
    throw base::Error(base::Blame::user,
                      base::text(path.string(), ": refused: a bare pickle, which only running it could read"),
                      "in Python: safetensors.torch.save_file(state_dict, 'weights.safetensors')");
  }
}

WeightsFile::~WeightsFile() = default;
WeightsFile::WeightsFile(WeightsFile&&) noexcept = default;

const std::vector<TensorView>& WeightsFile::tensors() const {
  return content_->read.tensors;
}

}  // namespace lockstep::weights
