// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/model/calls.h"

namespace lockstep::verbs::exporting {

using model::Call;

// A number of a shape: the same for every batch, or a multiple of the batch.
struct Size {
  int64_t fixed = 0;
  int64_t per_batch = 0;  // 0: fixed

  bool varies() const { return per_batch > 0; }
};
using Sizes = std::vector<Size>;

// The same call for two sizes of batch: what differs between them follows the batch.
inline constexpr int64_t kFirstBatch = 2, kSecondBatch = 3;
class PairedCall {
 public:
  PairedCall(const Call& first, const Call& second);

  const std::string& name() const { return first_.name; }
  bool is_in_place() const { return first_.name.ends_with('_'); }
  bool has(size_t i) const { return i < first_.inputs.size() && !first_.inputs[i].isNone(); }

  // Arguments by number. Each of them throws a bug where the argument is of another kind, or varies with the batch.
  at::Tensor tensor(size_t i) const;  // undefined: left out
  std::vector<at::Tensor> tensors(size_t i) const;
  int64_t integer(size_t i) const;
  std::vector<int64_t> integers(size_t i) const;
  std::vector<int64_t> two(size_t i) const;  // of a square one alone: it twice
  double number(size_t i) const;
  bool flag(size_t i) const;
  Size size(size_t i) const;  // may vary
  bool is_tensor(size_t i) const { return has(i) && first_.inputs[i].isTensor(); }

  std::vector<at::Tensor> all_inputs() const;  // every tensor among the arguments
  std::vector<at::Tensor> outputs() const;
  Sizes output_sizes() const;  // of the first output
  bool output_varies() const;  // the shape or content of an output follows the batch though no input does

 private:
  [[noreturn]] void refuse(size_t i, const std::string& why) const;

  const Call& first_;
  const Call& second_;
};

// Throws a bug when the two differ in more than sizes.
std::vector<PairedCall> pair_calls(const std::vector<Call>& first, const std::vector<Call>& second);

Sizes pair_sizes(at::IntArrayRef first, at::IntArrayRef second);

}  // namespace lockstep::verbs::exporting
