// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/step/cut_state.h"

namespace lockstep::training {

// The partitions of a state (step::CutState) on the ranks of one node, as one file of a checkpoint. The ranks hand them
// to the node's first rank, which writes the file. Ranks with the same node name share a node; rank 0 is on node 0.
class NodePart {
 public:
  // Every rank calls it. `device` is where the partitions are; copies from a GPU go through pinned memory.
  NodePart(comm::Group& group, const std::string& node, at::Device device = at::kCPU);

  bool writes() const { return group_.rank() == ranks_.front(); }
  int64_t num_nodes() const { return num_nodes_; }
  // Every rank calls it. The file with the partitions of this node's ranks, on its first rank; nothing on the others.
  // The copy stays as it is until the next call, or this object goes.
  std::optional<run::CheckpointPart> take(const step::CutState& state);
  // For rank 0: the names of the files of all nodes, its own first.
  std::vector<std::string> names() const;

 private:
  at::Tensor row_of(int64_t length) const;

  comm::Group& group_;
  at::Device device_;
  int64_t node_ = 0;  // in the order of their first ranks
  int64_t num_nodes_ = 0;
  std::vector<int64_t> ranks_;    // of this node, ascending
  std::vector<at::Tensor> rows_;  // of those, on the first
};

// What state.json says of the tensors in partitions and of the files they are in.
void describe_cut(base::Json& state, const step::CutState& cut, const std::vector<std::string>& parts);

}  // namespace lockstep::training
