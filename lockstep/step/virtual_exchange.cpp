// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::step {
namespace {

// Tensors as one long row, each in the order in which it lies in memory.
class LongRow {
 public:
  explicit LongRow(const Tensors& tensors) {
    for (const auto& tensor : tensors) {
      base::ensure(tensor.is_non_overlapping_and_dense(), "a gradient fills its memory");
      starts_.push_back(size_);
      flat_.push_back(tensor.as_strided({tensor.numel()}, {1}));
      size_ += tensor.numel();
    }
  }
  int64_t size() const { return size_; }

  // Elements from `begin` on, as far as there are some.
  void read(int64_t begin, at::Tensor into) const {
    visit(begin, into.numel(), [&](at::Tensor part, int64_t at) { into.narrow(0, at, part.numel()).copy_(part); });
  }
  void write(int64_t begin, const at::Tensor& from) {
    visit(begin, from.numel(), [&](at::Tensor part, int64_t at) { part.copy_(from.narrow(0, at, part.numel())); });
  }

 private:
  template <class Use>
  void visit(int64_t begin, int64_t count, const Use& use) const {
    const int64_t end = std::min(begin + count, size_);
    if (begin >= end) return;
    auto i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin() - 1);
    for (int64_t at = begin; at < end; ++i) {
      const int64_t inside = at - starts_[i];
      const int64_t length = std::min(flat_[i].numel() - inside, end - at);
      if (length > 0) use(flat_[i].narrow(0, inside, length), at - begin);
      at += std::max<int64_t>(length, 0);
    }
  }

  std::vector<int64_t> starts_;
  Tensors flat_;
  int64_t size_ = 0;
};

bool is_empty(const Slices& slices, const Node& node) {
  return slices.rows(node.begin).begin == slices.rows(node.begin + node.size - 1).end;
}

// received: [ranks, most nodes of a rank, part]. The sum over the whole tree, a view of one of its rows.
at::Tensor add_up(const at::Tensor& received, const Slices& slices) {
  TreeSum<at::Tensor> sum([](at::Tensor& left, const at::Tensor& right) { left.add_(right); });
  const int64_t num_ranks = received.size(0);
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const auto nodes = maximal_nodes(slices.of_rank(rank, num_ranks));
    for (size_t k = 0; k < nodes.size(); ++k) {
      const bool nothing = is_empty(slices, nodes[k]);
      sum.push(nodes[k], nothing ? std::nullopt : std::optional(received[rank][static_cast<int64_t>(k)]));
    }
  }
  const auto root = sum.take();
  base::ensure(root.size() == 1 && root[0].value, "a batch of one sample at least is summed up to the root");
  return *root[0].value;
}

int64_t most_nodes(const Slices& slices, int64_t num_ranks) {
  size_t most = 0;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    most = std::max(most, maximal_nodes(slices.of_rank(rank, num_ranks)).size());
  }
  return static_cast<int64_t>(most);
}

// This rank's own sums are no longer needed where the total is written; a rank with empty slices alone has none.
Tensors room_for_total(const std::vector<Partial<Tensors>>& mine, const Tensors& like) {
  for (const auto& partial : mine) {
    if (partial.value) return *partial.value;
  }
  Tensors fresh;
  for (const auto& tensor : like) fresh.push_back(at::empty_like(tensor.detach()));
  return fresh;
}

}  // namespace

void add_tensors(Tensors& left, const Tensors& right) {
  for (size_t i = 0; i < left.size(); ++i) left[i].add_(right[i]);
}

Tensors exchange_partials(comm::Group& group, const Slices& slices, std::vector<Partial<Tensors>> mine,
                          const Tensors& like, int64_t buffer) {
  Tensors total = room_for_total(mine, like);
  const int64_t num_ranks = group.size();
  if (num_ranks == 1) return total;
  LongRow sum(total);
  const int64_t nodes = most_nodes(slices, num_ranks);
  const int64_t whole = (sum.size() + num_ranks - 1) / num_ranks;
  const int64_t part = std::clamp<int64_t>(buffer / (num_ranks * nodes), 1, whole);
  const at::Tensor sent = at::zeros({num_ranks, nodes, part}, total[0].options());
  at::Tensor received = at::empty_like(sent);
  at::Tensor gathered = at::empty({num_ranks * part}, total[0].options());
  std::vector<LongRow> partials;
  for (const auto& partial : mine) partials.emplace_back(partial.value.value_or(Tensors{}));
  for (int64_t start = 0; start < sum.size(); start += num_ranks * part) {
    for (size_t k = 0; k < partials.size(); ++k) {
      for (int64_t rank = 0; rank < num_ranks; ++rank) {
        partials[k].read(start + rank * part, sent[rank][static_cast<int64_t>(k)]);
      }
    }
    group.all_to_all(sent, received);
    group.all_gather_into(add_up(received, slices), gathered);
    sum.write(start, gathered);
  }
  return total;
}

}  // namespace lockstep::step
