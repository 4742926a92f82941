// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/sampling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>

#include <algorithm>

namespace lockstep::model {
namespace {

at::Tensor best_of(const at::Tensor& wanted, const at::Tensor& keys, int64_t count) {
  const at::Tensor those = keys.masked_fill(wanted.bitwise_not(), -1);
  return std::get<1>(at::topk(those, std::min(count, keys.size(1)), 1));
}

}  // namespace

Sampled sample_balanced(const at::Tensor& labels, const at::Tensor& keys, const SampleSizes& sizes) {
  const at::Tensor is_positive = labels.gt(0), is_negative = labels.eq(0);
  const at::Tensor positive = best_of(is_positive, keys, sizes.most_positive);  // [images, k]
  const at::Tensor negative = best_of(is_negative, keys, sizes.slots);
  const at::Tensor num_positive = is_positive.sum(1, /*keepdim=*/true).clamp_max(sizes.most_positive);  // [images, 1]
  const at::Tensor slot = at::arange(sizes.slots, labels.options()).unsqueeze(0);                       // [1, slots]
  const at::Tensor rank = slot - num_positive;  // among the negative ones
  const at::Tensor count = at::minimum(is_negative.sum(1, /*keepdim=*/true) + num_positive,
                                       at::empty({1}, labels.options()).fill_(sizes.slots));
  const at::Tensor from_positive = positive.gather(1, slot.clamp_max(positive.size(1) - 1).expand_as(rank));
  const at::Tensor from_negative = negative.gather(1, rank.clamp(0, negative.size(1) - 1));
  const at::Tensor valid = slot.lt(count);
  const at::Tensor indices = at::where(rank.lt(0), from_positive, from_negative);
  return {indices * valid, valid};
}

at::Tensor sampling_keys(const Block& block, const at::Tensor& labels, spec::Sampler sampler) {
  const auto options = labels.options().dtype(at::kFloat);
  if (sampler == spec::Sampler::random) return at::empty(labels.sizes(), options).uniform_(0, 1, block.random);
  const int64_t count = labels.size(1);
  return at::arange(count, 0, -1, options).unsqueeze(0).expand_as(labels);
}

}  // namespace lockstep::model
