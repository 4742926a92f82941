// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/window_order.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::loader {
namespace {

int64_t purpose_seed(int64_t seed, const char* purpose) {
  return static_cast<int64_t>(base::derive_seed(static_cast<uint64_t>(seed), purpose) >> 2);
}

}  // namespace

WindowOrder::WindowOrder(const Extents& extents, int64_t window, int64_t seed, int64_t epoch) : extents_(extents) {
  const auto num_extents = static_cast<int64_t>(extents.all().size());
  base::ensure(num_extents > 0 && window > 0, "a window of at least one extent");
  const run::Order outer(num_extents, purpose_seed(seed, "extents"), epoch);
  const int64_t inner_seed = purpose_seed(seed, "window");
  for (int64_t turn = 0; turn < num_extents; ++turn) {
    turns_.push_back(outer(turn));
    begins_.push_back(begins_.back() + extents.all()[static_cast<size_t>(turns_.back())].samples.size());
    if ((turn + 1) % window != 0 && turn + 1 < num_extents) continue;
    inner_.emplace_back(begins_.back() - window_begins_.back(), inner_seed + static_cast<int64_t>(inner_.size()),
                        epoch);
    window_begins_.push_back(begins_.back());
  }
}

WindowOrder::Position WindowOrder::operator()(int64_t index) const {
  base::ensure(index >= 0 && index < size(), "an index within the epoch");
  const auto holder = [](const std::vector<int64_t>& begins, int64_t position) {
    return std::upper_bound(begins.begin(), begins.end(), position) - begins.begin() - 1;
  };
  const auto window = static_cast<size_t>(holder(window_begins_, index));
  const int64_t mixed = window_begins_[window] + inner_[window](index - window_begins_[window]);
  const int64_t turn = holder(begins_, mixed);
  const Extent& extent = extents_.all()[static_cast<size_t>(turns_[static_cast<size_t>(turn)])];
  return {turn, extent.samples.begin + mixed - begins_[static_cast<size_t>(turn)]};
}

Sequence::Sequence(Kind kind, int64_t num_samples, int64_t seed, const Extents* extents, int64_t window)
    : kind_(kind), num_samples_(num_samples), seed_(seed), extents_(extents), window_(window) {}

Sequence::Sequence(run::BalancedOrder balanced) : Sequence(Kind::balanced, balanced.size(), 0) {
  balanced_ = std::move(balanced);
}

Sequence::Sequence(run::GroupedOrder grouped) : Sequence(Kind::grouped, grouped.size(), 0) {
  grouped_ = std::move(grouped);
}

std::vector<int64_t> Sequence::batch(int64_t epoch, run::Range positions) {
  if (balanced_) return balanced_->samples(epoch, positions);
  if (grouped_) return grouped_->batch(epoch, positions).samples;
  std::vector<int64_t> ids;
  if (kind_ == Kind::in_order) {
    for (int64_t position = positions.begin; position < positions.end; ++position) ids.push_back(position);
    return ids;
  }
  if (kind_ == Kind::full) {
    const run::Order order(num_samples_, seed_, epoch);
    for (int64_t position = positions.begin; position < positions.end; ++position) ids.push_back(order(position));
    return ids;
  }
  if (epoch != epoch_) {
    windows_ = std::make_unique<WindowOrder>(*extents_, window_, seed_, epoch);
    epoch_ = epoch;
  }
  std::vector<std::pair<int64_t, int64_t>> rows;  // turn and id
  for (int64_t position = positions.begin; position < positions.end; ++position) {
    const WindowOrder::Position at = (*windows_)(position);
    rows.emplace_back(at.turn, at.id);
  }
  std::sort(rows.begin(), rows.end());
  for (const auto& row : rows) ids.push_back(row.second);
  return ids;
}

int64_t Sequence::canvas(int64_t epoch, run::Range positions) const {
  return grouped_ ? grouped_->batch(epoch, {positions.begin, positions.begin}).group : 0;
}

}  // namespace lockstep::loader
