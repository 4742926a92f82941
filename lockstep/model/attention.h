// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::model {

// A block that mixes tokens by attention, the first of which stands for the class: for explanations.
class AttentionBlock {
 public:
  virtual ~AttentionBlock() = default;
  // How much each token takes from each other one: [batch, heads, tokens, tokens], rows sum to 1. `input` as the block
  // takes it.
  virtual at::Tensor attention_shares(const at::Tensor& input) const = 0;
};

}  // namespace lockstep::model
