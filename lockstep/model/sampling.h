// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/model/network.h"

namespace lockstep::model {

struct Sampled {
  at::Tensor indices;  // int64 [images, slots]: the positive ones first; 0 in an empty slot
  at::Tensor valid;    // bool [images, slots]
};

struct SampleSizes {
  int64_t slots = 0;
  int64_t most_positive = 0;  // at most so many of them are positive; others fill what these leave
};

// A balanced choice among candidates of each image: labels int64 [images, candidates], above 0 positive, 0 negative,
// below 0 no candidate. Those with the largest keys (float [images, candidates], at least 0) are taken. Fixed shapes.
Sampled sample_balanced(const at::Tensor& labels, const at::Tensor& keys, const SampleSizes& sizes);

// Keys of a random choice, from the generator of `block`, or such that the first candidates are taken.
at::Tensor sampling_keys(const Block& block, const at::Tensor& labels, spec::Sampler sampler);

}  // namespace lockstep::model
