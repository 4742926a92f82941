// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/empty.h>

#include "lockstep/trace/simulated_device.h"

// For tests: a simulated GPU with its recorder.
namespace lockstep::trace {

struct WatchedDevice {
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
  SimulatedDevice device{recorder};

  forecast::Recording finish() { return recorder->finish(); }
};

inline at::Tensor on_gpu(at::IntArrayRef sizes, at::ScalarType type = at::kFloat,
                         at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return make(sizes, type, format);
}

// Sizes, strides and type of what a kernel gave.
inline std::string layout(const at::Tensor& tensor) {
  if (!tensor.defined()) return "none";
  std::ostringstream out;
  out << tensor.sizes() << tensor.strides() << tensor.scalar_type();
  return out.str();
}

}  // namespace lockstep::trace
