// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/recording.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::exporting {
namespace {

using base::text;

Size pair_size(int64_t first, int64_t second) {
  if (first == second) return {first, 0};
  const int64_t per_batch = (second - first) / (kSecondBatch - kFirstBatch);
  base::ensure(per_batch > 0 && first == per_batch * kFirstBatch, "a size that varies is a multiple of the batch");
  return {first, per_batch};
}

}  // namespace

Sizes pair_sizes(at::IntArrayRef first, at::IntArrayRef second) {
  base::ensure(first.size() == second.size(), "a shape has as many dims whatever the batch");
  Sizes sizes;
  sizes.reserve(first.size());
  for (size_t i = 0; i < first.size(); ++i) sizes.push_back(pair_size(first[i], second[i]));
  return sizes;
}

PairedCall::PairedCall(const Call& first, const Call& second) : first_(first), second_(second) {
  base::ensure(first.name == second.name && first.overload == second.overload &&
                   first.inputs.size() == second.inputs.size() && first.outputs.size() == second.outputs.size(),
               "a network makes the same calls whatever the batch");
}

void PairedCall::refuse(size_t i, const std::string& why) const {
  throw base::Error(base::Blame::bug, text("argument ", i, " of ", first_.name, ".", first_.overload, " ", why));
}

at::Tensor PairedCall::tensor(size_t i) const {
  if (!has(i)) return {};
  if (!first_.inputs[i].isTensor()) refuse(i, "is no tensor");
  return first_.inputs[i].toTensor();
}

std::vector<at::Tensor> PairedCall::tensors(size_t i) const {
  if (!has(i) || !first_.inputs[i].isTensorList()) refuse(i, "is no list of tensors");
  return first_.inputs[i].toTensorVector();
}

Size PairedCall::size(size_t i) const {
  if (!has(i)) refuse(i, "is left out");
  const auto value = [&](const Call& call) {
    if (call.inputs[i].isInt()) return call.inputs[i].toInt();
    if (!call.inputs[i].isScalar() || !call.inputs[i].toScalar().isIntegral(false)) refuse(i, "is no integer");
    return call.inputs[i].toScalar().toLong();
  };
  return pair_size(value(first_), value(second_));
}

int64_t PairedCall::integer(size_t i) const {
  const Size found = size(i);
  if (found.varies()) refuse(i, "follows the batch");
  return found.fixed;
}

std::vector<int64_t> PairedCall::integers(size_t i) const {
  if (!has(i)) return {};
  if (!first_.inputs[i].isIntList()) refuse(i, "is no list of integers");
  auto values = first_.inputs[i].toIntVector();
  if (values != second_.inputs[i].toIntVector()) refuse(i, "follows the batch");
  return values;
}

std::vector<int64_t> PairedCall::two(size_t i) const {
  auto values = integers(i);
  if (values.size() == 1) values.push_back(values.front());
  return values;
}

double PairedCall::number(size_t i) const {
  if (!has(i) || !first_.inputs[i].isScalar()) refuse(i, "is no number");
  return first_.inputs[i].toScalar().toDouble();
}

bool PairedCall::flag(size_t i) const {
  return has(i) && first_.inputs[i].toBool();
}

std::vector<at::Tensor> PairedCall::all_inputs() const {
  return model::tensors_in(first_.inputs);
}

std::vector<at::Tensor> PairedCall::outputs() const {
  return model::tensors_in(first_.outputs);
}

Sizes PairedCall::output_sizes() const {
  const auto first = model::tensors_in(first_.outputs), second = model::tensors_in(second_.outputs);
  base::ensure(!first.empty() && !second.empty(), first_.name + " gives a tensor");
  return pair_sizes(first.front().sizes(), second.front().sizes());
}

bool PairedCall::output_varies() const {
  if (outputs().empty()) return false;
  const Sizes sizes = output_sizes();
  return std::any_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.varies(); });
}

std::vector<PairedCall> pair_calls(const std::vector<Call>& first, const std::vector<Call>& second) {
  base::ensure(first.size() == second.size(), "a network makes as many calls whatever the batch");
  std::vector<PairedCall> pairs;
  pairs.reserve(first.size());
  for (size_t i = 0; i < first.size(); ++i) pairs.emplace_back(first[i], second[i]);
  return pairs;
}

}  // namespace lockstep::verbs::exporting
