// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/node_part.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdio>

#include "lockstep/run/saved_tensors.h"

namespace lockstep::training {
namespace {

// At a time from a rank to the one that writes: 256 MiB need no more than that beside the rows where they pass a GPU.
constexpr int64_t kHandedElements = int64_t{64} << 20;
constexpr int kTag = 77;

std::string file_of(int64_t node) {
  char name[40];
  std::snprintf(name, sizeof name, "part-%04lld.safetensors", static_cast<long long>(node));
  return name;
}

std::string cut_name_of(const step::CutState::Whole& whole) {
  return run::cut_name(whole.weight ? "weights" : "optimizer", whole.name);
}

void hand_over(comm::Group& group, const at::Tensor& row, int64_t to) {
  for (int64_t at = 0; at < row.numel(); at += kHandedElements) {
    group.send(row.narrow(0, at, std::min(kHandedElements, row.numel() - at)), to, kTag);
  }
}

void accept(comm::Group& group, const at::Tensor& row, int64_t from) {
  for (int64_t at = 0; at < row.numel(); at += kHandedElements) {
    at::Tensor some = row.narrow(0, at, std::min(kHandedElements, row.numel() - at));
    group.receive(some, from, kTag);
  }
}

}  // namespace

NodePart::NodePart(comm::Group& group, const std::string& node, at::Device device) : group_(group), device_(device) {
  std::vector<std::string> seen;
  const auto nodes = comm::gather_texts(group, node);
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    const auto known = std::find(seen.begin(), seen.end(), nodes[rank]);
    if (nodes[rank] == node) {
      node_ = known - seen.begin();
      ranks_.push_back(static_cast<int64_t>(rank));
    }
    if (known == seen.end()) seen.push_back(nodes[rank]);
  }
  num_nodes_ = static_cast<int64_t>(seen.size());
}

at::Tensor NodePart::row_of(int64_t length) const {
  return at::empty({length}, at::TensorOptions(at::kFloat).pinned_memory(device_.is_cuda())).zero_();
}

std::optional<run::CheckpointPart> NodePart::take(const step::CutState& state) {
  if (rows_.empty() || rows_[0].numel() != state.length()) {
    rows_.clear();
    const size_t count = writes() ? ranks_.size() : 1;
    for (size_t i = 0; i < count; ++i) rows_.push_back(row_of(state.length()));
  }
  state.pack(rows_[0]);
  if (!writes()) {
    hand_over(group_, rows_[0], ranks_.front());
    rows_.clear();  // the node has one copy, not two
    return std::nullopt;
  }
  std::vector<weights::TensorView> views;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (i > 0) accept(group_, rows_[i], ranks_[i]);
    for (const auto& partition : state.partitions(rows_[i], ranks_[i])) {
      views.push_back({run::partition_name(cut_name_of(partition.whole), partition.first),
                       weights::Dtype::F32,
                       {partition.values.numel()},
                       {static_cast<const std::byte*>(partition.values.const_data_ptr()), partition.values.nbytes()}});
    }
  }
  return run::safetensors_part(file_of(node_), views);
}

std::vector<std::string> NodePart::names() const {
  std::vector<std::string> all;
  for (int64_t node = 0; node < num_nodes_; ++node) all.push_back(file_of(node));
  return all;
}

void describe_cut(base::Json& state, const step::CutState& cut, const std::vector<std::string>& parts) {
  std::vector<run::CutTensor> all;
  for (const auto& whole : cut.wholes()) {
    all.push_back({cut_name_of(whole), whole.slot->sizes, whole.slot->strides});
  }
  run::describe_cut(state, all, parts);
}

}  // namespace lockstep::training
