// sources: lockstep/base/*.cpp lockstep/weights/pickle.cpp lockstep/weights/pth.cpp lockstep/weights/safetensors.cpp lockstep/weights/weights_file.cpp lockstep/weights/zip.cpp
// SPDX-License-Identifier: Apache-2.0
// Any bytes, read as a checkpoint and as the bare pickle inside one, give tensors or a user error.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/weights/pickle.h"
#include "lockstep/weights/pth.h"

namespace {

using namespace lockstep::base;
using namespace lockstep::weights;

template <class Read>
void expect_user_error(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.blame() != Blame::user) std::abort();
  }
}

// Every byte of every tensor is read, so that the sanitizer sees a view outside its file.
void touch(const PthTensors& read) {
  unsigned sum = 0;
  for (const TensorView& tensor : read.tensors) {
    if (tensor_bytes(tensor.dtype, tensor.shape) != tensor.bytes.size()) std::abort();
    for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte);
  }
  if (sum == UINT32_MAX) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto content = std::as_bytes(std::span(data, size));
  expect_user_error([&] { touch(parse_pth(content, "fuzz")); });
  constexpr std::string_view kAllowed[] = {"collections.OrderedDict", "torch.FloatStorage"};
  expect_user_error([&] { read_pickle(content, kAllowed, "fuzz", 10'000); });
  return 0;
}
