// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/pixels.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

namespace lockstep::kernel {
namespace {

using Normalise = at::Tensor(const at::Tensor&, at::ArrayRef<double>, at::ArrayRef<double>);

const c10::OperatorHandle& normalise_operator() {
  static const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::normalise", "");
  return handle;
}

at::Tensor normalise_cpu(const at::Tensor& pixels, at::ArrayRef<double> factor, at::ArrayRef<double> offset) {
  return pixels.to(at::kFloat).mul_(at::tensor(factor).to(at::kFloat)).add_(at::tensor(offset).to(at::kFloat));
}

at::Tensor normalise_meta(const at::Tensor& pixels, at::ArrayRef<double> /*factor*/, at::ArrayRef<double> /*offset*/) {
  return at::empty(pixels.sizes(), pixels.options().dtype(at::kFloat));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def("normalise(Tensor pixels, float[] factor, float[] offset) -> Tensor");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("normalise", &normalise_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("normalise", &normalise_meta);
}

bool takes_normalise(const at::Tensor& pixels) {
  return pixels.is_cuda() && pixels.scalar_type() == at::kByte && pixels.is_contiguous() && pixels.size(-1) <= 4 &&
         pixels.numel() > 0 && normalise_operator().hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

at::Tensor normalise(const at::Tensor& pixels, const std::vector<double>& factor, const std::vector<double>& offset) {
  return normalise_operator().typed<Normalise>().call(pixels, factor, offset);
}

}  // namespace lockstep::kernel
