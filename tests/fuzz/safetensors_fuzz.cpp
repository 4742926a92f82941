// sources: lockstep/base/*.cpp lockstep/weights/pickle.cpp lockstep/weights/pth.cpp lockstep/weights/safetensors.cpp lockstep/weights/weights_file.cpp lockstep/weights/zip.cpp
// SPDX-License-Identifier: Apache-2.0
// Any bytes give tensors that lie inside the input, or a user error.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::base;
  using namespace lockstep::weights;
  const auto content = std::as_bytes(std::span(data, size));
  try {
    uint64_t total = 0;
    for (const TensorView& tensor : parse_safetensors(content, "fuzz").tensors) {
      if (tensor_bytes(tensor.dtype, tensor.shape) != tensor.bytes.size()) std::abort();
      if (!tensor.bytes.empty() &&
          (tensor.bytes.data() < content.data() || tensor.bytes.data() + tensor.bytes.size() > content.data() + size)) {
        std::abort();
      }
      total += tensor.bytes.size();
    }
    if (total > size) std::abort();
  } catch (const Error& error) {
    if (error.blame() != Blame::user) std::abort();
  }
  return 0;
}
