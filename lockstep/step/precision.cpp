// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <set>
#include <string>

#include "lockstep/step/weight_copies.h"

namespace lockstep::step {
namespace {

std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

}  // namespace

at::ScalarType compute_type(spec::Precision precision) {
  return precision == spec::Precision::bf16 ? at::kBFloat16 : at::kFloat;
}

std::vector<bool> cast_parameters(const model::Block& block) {
  std::set<std::string> norms;  // a layer whose weight is a vector is a norm: matrices and kernels have more dims
  for (const auto& parameter : block.parameters) {
    const bool is_weight = parameter.name.size() > 7 && parameter.name.ends_with(".weight");
    if (is_weight && parameter.tensor.dim() == 1) norms.insert(layer_of(parameter.name));
  }
  std::vector<bool> cast;
  cast.reserve(block.parameters.size());
  for (const auto& parameter : block.parameters) cast.push_back(norms.count(layer_of(parameter.name)) == 0);
  return cast;
}

WeightCasts::WeightCasts(const model::Network& network, spec::Precision precision, size_t end,
                         const WeightCopies* copies) {
  for (size_t i = 0; i < end; ++i) cast(*network.blocks()[i], precision, copies);
}

void WeightCasts::cast(model::Block& block, spec::Precision precision, const WeightCopies* copies) {
  const bool narrow = compute_type(precision) != at::kFloat;
  if (!narrow && !copies) return;
  const std::vector<bool> cast = cast_parameters(block);
  for (size_t i = 0; i < cast.size(); ++i) {
    at::Tensor& weight = block.parameters[i].tensor;
    const at::Tensor copy = copies ? copies->of(weight) : at::Tensor();
    if (!copy.defined() && !(narrow && cast[i])) continue;
    kept_.push_back({&weight, weight});
    weight = copy.defined() ? copy : weight.to(compute_type(precision));
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

PassPrecision::PassPrecision(const model::Network& network, spec::Precision precision, at::Device device, size_t end,
                             const WeightCopies* copies)
    : casts_(network, precision, end, copies) {
  const bool tensor_cores = precision == spec::Precision::tf32;
  at::globalContext().setAllowTF32CuBLAS(tensor_cores);
  at::globalContext().setAllowTF32CuDNN(tensor_cores);  // libtorch's own default is true: fp32 would not be fp32
  if (precision == spec::Precision::amp) autocast_.emplace(device);
}

}  // namespace lockstep::step
