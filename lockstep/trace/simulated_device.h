// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <memory>

#include "lockstep/trace/recorder.h"

namespace lockstep::trace {

// The simulated GPU: CUDA tensors whose storages hold nothing, in a process without libtorch_cuda. libtorch's own code
// above the kernels runs as on a real GPU (autograd with its device thread, autocast, the choice of cuDNN, every
// composite operator); a kernel gives outputs of the right size, type and layout and tells the recorder.
// Every element counts as one, so that a sum is its number of elements and the step finds finite, plausible values.
//
// For its lifetime the recorder hears everything. One at a time; the device stays in the process for good.
class SimulatedDevice {
 public:
  explicit SimulatedDevice(std::shared_ptr<Recorder> recorder);
  ~SimulatedDevice();
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  static at::Device device() { return {at::kCUDA, 0}; }

 private:
  // libtorch warns of what a real GPU would do slower; a plan counts it, and nobody reads it there.
  struct Silence final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Silence silence_;
  c10::WarningUtils::WarningHandlerGuard quiet_{&silence_};
};

// For the kernels.
Recorder& recorder();                          // REQUIRES: a SimulatedDevice lives
int64_t storage_id(const at::Tensor& tensor);  // -1: it has no bytes, or none on the GPU
double value_of(const at::Tensor& tensor);     // of each element
void set_value(const at::Tensor& tensor, double value);
at::Tensor make(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format = at::MemoryFormat::Contiguous);
at::Tensor make_bytes(int64_t bytes);
void give_size(const at::Tensor& tensor, at::IntArrayRef sizes);     // where it has another: with a storage of its own
void give_layout(const at::Tensor& tensor, const at::Tensor& made);  // size, strides and storage of one just made

}  // namespace lockstep::trace
