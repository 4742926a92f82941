// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/weight_copies.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "lockstep/step/precision.h"

namespace lockstep::step {
namespace {

bool is_convolution(const model::Named& parameter) {
  return parameter.tensor.dim() == 4 && parameter.name.ends_with(".weight");
}

}  // namespace

WeightCopies::WeightCopies(const model::Network& network, spec::Precision precision, size_t from) {
  const bool bf16 = precision == spec::Precision::bf16;
  if (!bf16 && precision != spec::Precision::amp) return;
  for (size_t i = from; i < network.blocks().size(); ++i) {
    const model::Block& block = *network.blocks()[i];
    const auto cast = cast_parameters(block);
    for (size_t k = 0; k < block.parameters.size(); ++k) {
      const model::Named& parameter = block.parameters[k];
      if (!(bf16 ? cast[k] : is_convolution(parameter))) continue;
      if (!places_.emplace(parameter.tensor.unsafeGetTensorImpl(), copies_.size()).second) continue;
      at::Tensor copy =
          at::empty_like(parameter.tensor.detach(), parameter.tensor.options().dtype(bf16 ? at::kBFloat16 : at::kHalf));
      copies_.push_back({parameter.tensor, copy.requires_grad_(true)});
    }
  }
}

std::vector<at::Tensor> WeightCopies::all() const {
  std::vector<at::Tensor> copies;
  copies.reserve(copies_.size());
  for (const Copy& entry : copies_) copies.push_back(entry.copy);
  return copies;
}

at::Tensor WeightCopies::of(const at::Tensor& weight) const {
  const auto found = places_.find(weight.unsafeGetTensorImpl());
  return found == places_.end() ? at::Tensor() : copies_[found->second].copy;
}

at::Tensor WeightCopies::leaf(const at::Tensor& weight) const {
  const at::Tensor copy = of(weight);
  return copy.defined() ? copy : weight;
}

void WeightCopies::refresh() {
  const c10::AutoGradMode no_gradients(false);
  for (Copy& entry : copies_) {
    const auto version = static_cast<int64_t>(entry.weight._version());
    if (version == entry.version) continue;
    entry.copy.copy_(entry.weight);
    entry.version = version;
  }
}

}  // namespace lockstep::step
