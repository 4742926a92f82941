// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

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

WeightCasts::WeightCasts(const model::Network& network, spec::Precision precision, size_t end) {
  for (size_t i = 0; i < end; ++i) cast(*network.blocks()[i], precision);
}

void WeightCasts::cast(model::Block& block, spec::Precision precision) {
  if (compute_type(precision) == at::kFloat) return;
  std::set<std::string> norms;  // a layer whose weight is a vector is a norm: matrices and kernels have more dims
  for (const auto& parameter : block.parameters) {
    const bool is_weight = parameter.name.size() > 7 && parameter.name.ends_with(".weight");
    if (is_weight && parameter.tensor.dim() == 1) norms.insert(layer_of(parameter.name));
  }
  for (auto& parameter : block.parameters) {
    if (norms.count(layer_of(parameter.name))) continue;
    kept_.push_back({&parameter.tensor, parameter.tensor});
    parameter.tensor = parameter.tensor.to(compute_type(precision));
  }
}

WeightCasts::~WeightCasts() {
  for (auto& kept : kept_) *kept.position = kept.master;
}

Autocast::Autocast(at::Device device)
    : device_(device.type()),
      enabled_before_(at::autocast::is_autocast_enabled(device_)),
      cached_before_(at::autocast::is_autocast_cache_enabled()),
      type_before_(at::autocast::get_autocast_dtype(device_)) {
  at::autocast::set_autocast_dtype(device_, device.is_cuda() ? at::kHalf : at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(false);
  at::autocast::set_autocast_enabled(device_, true);
}

Autocast::~Autocast() {
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_cache_enabled(cached_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
}

PassPrecision::PassPrecision(const model::Network& network, spec::Precision precision, at::Device device, size_t end)
    : casts_(network, precision, end) {
  const bool tensor_cores = precision == spec::Precision::tf32;
  at::globalContext().setAllowTF32CuBLAS(tensor_cores);
  at::globalContext().setAllowTF32CuDNN(tensor_cores);  // libtorch's own default is true: fp32 would not be fp32
  if (precision == spec::Precision::amp) autocast_.emplace(device);
}

}  // namespace lockstep::step
