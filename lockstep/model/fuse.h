// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/model/calls.h"

namespace lockstep::model {

// Weights of convolutions as oneDNN wants them, with the batch norm behind folded in; by the weights of both. Batches
// of any size share them.
struct PackedConvolution {
  at::Tensor weight;
  at::Tensor bias;   // undefined: none
  at::Tensor plain;  // what it was made of: it keeps its address
};
using PackedConvolutions = std::map<std::pair<const void*, const void*>, PackedConvolution>;

// The calls that depend on `inputs`, in order; the others gave constants. None: they cannot be made a second time (one
// of them gave no tensor but a number, wrote into a constant, or takes a list with gaps, as an index is).
std::optional<std::vector<Call>> varying_calls(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs);

// Puts one call of oneDNN's in the place of a convolution with constant weights, the batch norm behind it (as in
// evaluation), a sum, and ReLU or a clamp (ReLU6), as far as they follow each other and nobody else reads what is
// between. CPU, fp32 or bf16. `outputs` are read at the end.
std::vector<Call> fuse_calls(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& outputs, PackedConvolutions& packed);

}  // namespace lockstep::model
