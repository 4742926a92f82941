// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/sweep.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "lockstep/base/random.h"

namespace lockstep::measure {

using forecast::NumberType;

SweepRange SweepRange::of(at::Device device) {
  if (device.is_cuda()) {
    return {
        device, {NumberType::bf16, NumberType::tf32, NumberType::fp32, NumberType::fp16}, {8, 32, 128}, 1.2e12, 12e9};
  }
  return {device, {NumberType::fp32, NumberType::bf16}, {1, 4, 16}, 2e9, 1e8};
}

at::TensorOptions options_of(const SweepRange& range, NumberType type) {
  const auto scalar = type == NumberType::bf16 ? at::kBFloat16 : type == NumberType::fp16 ? at::kHalf : at::kFloat;
  return at::TensorOptions(range.device).dtype(scalar);
}

at::Tensor noise(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::empty(sizes, options).normal_();
}

at::Tensor image_noise(at::IntArrayRef sizes, const at::TensorOptions& options, bool contiguous) {
  const auto format = contiguous ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
  return at::empty(sizes, options.memory_format(format)).normal_();
}

std::vector<SweepCase> make_sweep(const SweepRange& range, uint64_t seed) {
  std::vector<SweepCase> all;
  add_products(all, range);
  add_convolutions(all, range);
  add_passes(all, range);
  add_updates(all, range);
  std::vector<SweepCase> cases;
  for (auto& one : all) {
    if (one.flops <= range.most_flops && one.bytes <= range.most_bytes) cases.push_back(std::move(one));
  }
  base::Random random(base::derive_seed(seed, "sweep"));
  for (size_t i = cases.size(); i > 1; --i) {
    std::swap(cases[i - 1], cases[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return cases;
}

}  // namespace lockstep::measure
