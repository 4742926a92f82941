// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/sync_check.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::training {
namespace {

using base::text;

// The elements as integers, in the order of memory where that is dense: the ranks lay it out alike.
at::Tensor bits_of(const at::Tensor& tensor) {
  constexpr at::ScalarType kIntegers[] = {at::kChar, at::kShort, at::kInt, at::kLong};
  at::Tensor dense = tensor.detach();
  if (!dense.is_non_overlapping_and_dense()) dense = dense.contiguous();
  const auto size = static_cast<uint64_t>(dense.element_size());
  base::ensure(std::has_single_bit(size) && size <= 8, "an element is an integer's size");
  return dense.as_strided({dense.numel()}, {1}).view(kIntegers[std::countr_zero(size)]);
}

constexpr int64_t kAtOnce = 1 << 20;  // elements: what it takes beside them stays small

// `odd`: the first odd numbers where the tensor is, as many as it has elements or kAtOnce.
at::Tensor fingerprint(const at::Tensor& tensor, const at::Tensor& odd) {
  const at::Tensor bits = bits_of(tensor);
  at::Tensor sum;
  for (int64_t from = 0; from < bits.numel(); from += kAtOnce) {
    const int64_t size = std::min(bits.numel() - from, kAtOnce);
    const at::Tensor part = (bits.narrow(0, from, size) * odd.narrow(0, 0, size)).sum();  // of long integers
    sum = sum.defined() ? sum * 31 + part : part;
  }
  return sum.defined() ? sum : at::zeros({}, odd.options());
}

// The value that most ranks have; of equally many, that of the lowest rank.
int64_t of_most(const std::vector<int64_t>& values) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t value : values) ++counts[value];
  return *std::max_element(values.begin(), values.end(), [&](int64_t a, int64_t b) { return counts[a] < counts[b]; });
}

[[noreturn]] void throw_desync(const std::vector<model::Named>& tensors, const std::vector<at::Tensor>& all,
                               int64_t step) {
  std::set<int64_t> wrong;
  std::string first;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<int64_t> values;
    for (const auto& rank : all) values.push_back(rank.const_data_ptr<int64_t>()[i]);
    const int64_t right = of_most(values);
    for (size_t rank = 0; rank < values.size(); ++rank) {
      if (values[rank] == right) continue;
      wrong.insert(static_cast<int64_t>(rank));
      if (first.empty()) first = tensors[i].name;
    }
  }
  std::vector<std::string> names;
  for (const int64_t rank : wrong) names.push_back(text(rank));
  throw base::Error(base::Blame::machine,
                    text("after step ", step, " rank ", base::join(names, ", "), " of ", all.size(),
                         " no longer holds the weights of the others; the first that differs is '", first, "'"),
                    "the last checkpoint is older than this: start again, without the node of that rank when it "
                    "comes back (training.replay_every finds a machine that computes wrongly)");
}

}  // namespace

at::Tensor fingerprints(const std::vector<model::Named>& tensors) {
  // One wait for each device, not for each tensor: an optimizer keeps numbers on the host.
  std::map<c10::DeviceType, std::vector<size_t>> by_device;
  for (size_t i = 0; i < tensors.size(); ++i) by_device[tensors[i].tensor.device().type()].push_back(i);
  at::Tensor all = at::empty({static_cast<int64_t>(tensors.size())}, at::kLong);
  for (const auto& [device, positions] : by_device) {
    int64_t most = 1;
    for (const size_t i : positions) most = std::max(most, tensors[i].tensor.numel());
    const auto here = tensors[positions[0]].tensor.options().dtype(at::kLong);
    const at::Tensor odd = at::arange(1, 2 * std::min(most, kAtOnce) + 1, 2, here);
    std::vector<at::Tensor> sums;
    for (const size_t i : positions) sums.push_back(fingerprint(tensors[i].tensor, odd));
    const at::Tensor there = at::stack(sums).cpu();
    for (size_t i = 0; i < positions.size(); ++i) {
      all.mutable_data_ptr<int64_t>()[positions[i]] = there.const_data_ptr<int64_t>()[i];
    }
  }
  return all;
}

void check_sync(comm::Group& group, const std::vector<model::Named>& tensors, int64_t step) {
  const auto all = group.all_gather(fingerprints(tensors));
  const bool same = std::all_of(all.begin(), all.end(), [&](const at::Tensor& rank) { return rank.equal(all[0]); });
  if (!same) throw_desync(tensors, all, step);
}

}  // namespace lockstep::training
