// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/precision.h"

#include <set>
#include <string>

namespace lockstep::step {
namespace {

std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

}  // namespace

at::ScalarType compute_type(spec::Precision precision) {
  return precision == spec::Precision::bf16 ? at::kBFloat16 : at::kFloat;
}

WeightCasts::WeightCasts(const model::Network& network, spec::Precision precision) {
  if (precision == spec::Precision::fp32) return;
  for (const auto& block : network.blocks()) {
    std::set<std::string> norms;  // a layer whose weight is a vector is a norm: matrices and kernels have more dims
    for (const auto& parameter : block->parameters) {
      const bool is_weight = parameter.name.size() > 7 && parameter.name.ends_with(".weight");
      if (is_weight && parameter.tensor.dim() == 1) norms.insert(layer_of(parameter.name));
    }
    for (auto& parameter : block->parameters) {
      if (norms.count(layer_of(parameter.name))) continue;
      kept_.push_back({&parameter.tensor, parameter.tensor});
      parameter.tensor = parameter.tensor.to(compute_type(precision));
    }
  }
}

WeightCasts::~WeightCasts() {
  for (auto& kept : kept_) *kept.place = kept.master;
}

}  // namespace lockstep::step
