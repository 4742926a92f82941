// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/loader/extents.h"
#include "lockstep/run/balanced_order.h"
#include "lockstep/run/grouped_order.h"
#include "lockstep/run/order.h"

namespace lockstep::loader {

// The order of one epoch in which neighbours of a shard stay near: the extents are shuffled, each `window` of them in a
// row make a window, and the samples of a window are shuffled among themselves. Both are bijections fixed by (seed,
// epoch). Memory: two words an extent.
class WindowOrder {
 public:
  // `extents` must outlive it. REQUIRES: not empty, window > 0
  WindowOrder(const Extents& extents, int64_t window, int64_t seed, int64_t epoch);

  struct Position {
    int64_t turn = 0;  // of the sample's extent among all, in the order in which they come
    int64_t id = 0;

    bool operator==(const Position&) const = default;
  };
  Position operator()(int64_t index) const;  // REQUIRES: 0 <= index < size()
  int64_t size() const { return window_begins_.back(); }

 private:
  const Extents& extents_;
  std::vector<int64_t> turns_;         // the extent that comes as number i
  std::vector<int64_t> begins_ = {0};  // position where it would begin, were its samples not mixed
  std::vector<int64_t> window_begins_ = {0};
  std::vector<run::Order> inner_;  // of each window
};

// Which samples a batch holds: shuffled fully or in windows, by classes or by canvases, or in order. Made for one
// thread.
class Sequence {
 public:
  enum class Kind { in_order, full, windows, balanced, grouped };
  // `extents` must outlive it; only windows needs it.
  Sequence(Kind kind, int64_t num_samples, int64_t seed, const Extents* extents = nullptr, int64_t window = 0);
  explicit Sequence(run::BalancedOrder balanced);
  explicit Sequence(run::GroupedOrder grouped);

  // The samples at `positions` of the epoch's order, one batch: of windows sorted by their extents' turns, so that a
  // rank that takes a contiguous share of the batch needs the same share of the extents only.
  std::vector<int64_t> batch(int64_t epoch, run::Range positions);
  int64_t canvas(int64_t epoch, run::Range positions) const;  // of that batch: of grouped the samples' group, else 0

 private:
  Kind kind_;
  int64_t num_samples_;
  int64_t seed_;
  const Extents* extents_;
  int64_t window_;
  int64_t epoch_ = -1;
  std::unique_ptr<WindowOrder> windows_;  // of epoch_
  std::optional<run::BalancedOrder> balanced_;
  std::optional<run::GroupedOrder> grouped_;
};

}  // namespace lockstep::loader
