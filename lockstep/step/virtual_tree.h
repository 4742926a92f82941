// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/run/order.h"

namespace lockstep::step {

// The slices of one batch: as many whatever the ranks, sizes differ by one at most, some are empty when the batch has
// fewer rows than slices. A rank has whole slices, one after the other.
class Slices {
 public:
  Slices(int64_t num_rows, int64_t count) : num_rows_(num_rows), count_(count) {}

  int64_t count() const { return count_; }
  run::Range rows(int64_t slice) const { return run::rank_range({0, num_rows_}, slice, count_); }
  run::Range of_rank(int64_t rank, int64_t num_ranks) const { return run::rank_range({0, count_}, rank, num_ranks); }

 private:
  int64_t num_rows_;
  int64_t count_;
};

// A node of the binary tree over the slices: `size` of them, a power of two, from `begin` on, a multiple of it.
struct Node {
  int64_t begin = 0;
  int64_t size = 1;

  bool is_left_of(const Node& other) const {
    return size == other.size && begin % (2 * size) == 0 && begin + size == other.begin;
  }
  bool operator==(const Node&) const = default;
};

// The fewest nodes that together are these slices, in order. At most 2 log2(size) of them.
std::vector<Node> maximal_nodes(run::Range slices);

template <class Value>
struct Partial {
  Node node;
  std::optional<Value> value;  // none: all its slices are empty
};

// Adds values up along the tree: two nodes that are pushed one after the other become their parent as soon as they are
// its two children, always the right one added to the left one. So the sum depends on the values of the slices alone,
// whoever had which of them added up already. An empty slice adds nothing (not even a zero: -0 + 0 is not -0).
template <class Value>
class TreeSum {
 public:
  explicit TreeSum(std::function<void(Value& left, const Value& right)> add) : add_(std::move(add)) {}

  // REQUIRES: the slices of `node` follow those of the node before.
  void push(Node node, std::optional<Value> value) {
    partials_.push_back({node, std::move(value)});
    while (partials_.size() > 1 && partials_[partials_.size() - 2].node.is_left_of(partials_.back().node)) {
      const Partial<Value> right = std::move(partials_.back());
      partials_.pop_back();
      Partial<Value>& left = partials_.back();
      left.node.size *= 2;
      if (left.value && right.value) add_(*left.value, *right.value);
      if (!left.value) left.value = right.value;
    }
  }

  // What there is: the maximal nodes of all slices pushed; the whole sum when all were.
  std::vector<Partial<Value>> take() { return std::exchange(partials_, {}); }

 private:
  std::function<void(Value&, const Value&)> add_;
  std::vector<Partial<Value>> partials_;
};

}  // namespace lockstep::step
