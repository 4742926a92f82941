// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/grouped_order.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::run {
namespace {

int64_t seed_for(int64_t seed, const char* purpose) {
  return static_cast<int64_t>(base::derive_seed(static_cast<uint64_t>(seed), purpose) >> 2);
}

}  // namespace

GroupedOrder::GroupedOrder(const std::vector<int32_t>& groups, int64_t batch, int64_t seed)
    : batch_(batch), seed_(seed) {
  base::ensure(!groups.empty() && batch > 0, "samples to group");
  base::ensure(*std::min_element(groups.begin(), groups.end()) >= 0, "every sample has a group");
  groups_.resize(static_cast<size_t>(*std::max_element(groups.begin(), groups.end())) + 1);
  for (const int32_t group : groups) ++groups_[static_cast<size_t>(group)].count;
  int64_t first = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    group.first = first;
    group.batches = i == 0 ? 0 : group.count / batch;
    group.rest = num_left_;
    first += group.count;
    num_grouped_ += group.batches;
    num_left_ += group.count - group.batches * batch;
  }
  members_.resize(groups.size());
  std::vector<int64_t> next;
  next.reserve(groups_.size());
  for (const Group& group : groups_) next.push_back(group.first);
  for (size_t i = 0; i < groups.size(); ++i) {
    members_[static_cast<size_t>(next[static_cast<size_t>(groups[i])]++)] = static_cast<int64_t>(i);
  }
}

int64_t GroupedOrder::batches(int32_t group) const {
  if (group == 0) return num_steps(num_left_, batch_);
  return static_cast<size_t>(group) < groups_.size() ? groups_[static_cast<size_t>(group)].batches : 0;
}

int64_t GroupedOrder::sample_of(size_t group, int64_t index, int64_t epoch) const {
  const Group& one = groups_[group];
  const Order shuffled(one.count, seed_for(seed_, "group") + static_cast<int64_t>(group), epoch);
  return members_[static_cast<size_t>(one.first + shuffled(index))];
}

int64_t GroupedOrder::left_over(int64_t index, int64_t epoch) const {
  const int64_t at = Order(num_left_, seed_for(seed_, "mixed"), epoch)(index);
  const auto behind = std::upper_bound(groups_.begin(), groups_.end(), at,
                                       [](int64_t value, const Group& group) { return value < group.rest; });
  const auto group = static_cast<size_t>(behind - groups_.begin() - 1);
  return sample_of(group, groups_[group].batches * batch_ + at - groups_[group].rest, epoch);
}

GroupedOrder::Batch GroupedOrder::batch(int64_t epoch, Range positions) const {
  base::ensure(positions.begin % batch_ == 0 && positions.size() <= batch_ && positions.end <= size(),
               "a batch of the order");
  const int64_t number = positions.begin / batch_, whole = size() / batch_;
  // The last batch of an epoch, if it is smaller, is a mixed one.
  int64_t turn = number < whole ? Order(whole, seed_for(seed_, "batches"), epoch)(number) : number;
  Batch found;
  for (size_t group = 1; group < groups_.size(); ++group) {
    if (turn >= groups_[group].batches) {
      turn -= groups_[group].batches;
      continue;
    }
    found.group = number == 0 ? 0 : static_cast<int32_t>(group);
    for (int64_t row = 0; row < positions.size(); ++row)
      found.samples.push_back(sample_of(group, turn * batch_ + row, epoch));
    return found;
  }
  for (int64_t row = 0; row < positions.size(); ++row) found.samples.push_back(left_over(turn * batch_ + row, epoch));
  return found;
}

}  // namespace lockstep::run
