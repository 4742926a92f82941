// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/sync_check.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs {
namespace {

using base::text;

// Dense memory is read as it lies, whatever the order of its dims: the ranks lay it out alike.
uint32_t checksum_of(const at::Tensor& tensor) {
  at::Tensor host = tensor.detach().to(at::kCPU);
  if (!host.is_non_overlapping_and_dense()) host = host.contiguous();
  return base::crc32c(std::span(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()));
}

at::Tensor checksums_of(const std::vector<model::Named>& tensors) {
  at::Tensor all = at::empty({static_cast<int64_t>(tensors.size())}, at::kLong);
  for (size_t i = 0; i < tensors.size(); ++i) all.mutable_data_ptr<int64_t>()[i] = checksum_of(tensors[i].tensor);
  return all;
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

uint32_t checksum(const std::vector<model::Named>& tensors) {
  const at::Tensor each = checksums_of(tensors);
  return base::crc32c(std::span(static_cast<const std::byte*>(each.const_data_ptr()), each.nbytes()));
}

void check_sync(comm::Group& group, const std::vector<model::Named>& tensors, int64_t step) {
  const auto all = group.all_gather(checksums_of(tensors));
  const bool same = std::all_of(all.begin(), all.end(), [&](const at::Tensor& rank) { return rank.equal(all[0]); });
  if (!same) throw_desync(tensors, all, step);
}

}  // namespace lockstep::verbs
