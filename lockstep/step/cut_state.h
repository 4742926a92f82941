// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/step/partitioning.h"

namespace lockstep::step {

// The state that ranks with partitions (training.zero) save, without gathering it. A rank packs its partitions into one
// row of floats, equally long on every rank; another rank that is given the row knows what is in it.
// The partitioning and the tensors outlive it.
class CutState {
 public:
  // `state`: the optimizer's, of this rank's partitions, and the entries that are the same on every rank.
  CutState(const Partitioning& partitioning, const std::vector<model::Named>& state);

  struct Whole {
    bool weight = false;  // of the network (level 3); else of the optimizer's state
    std::string name;     // "head.weight", "exp_avg.head.weight"
    const Slot* slot = nullptr;
  };
  // Every tensor that is cut: the same list on every rank.
  std::vector<Whole> wholes() const;
  // The entries of the state that are not cut: every rank has them.
  const std::vector<model::Named>& shared() const { return shared_; }

  int64_t length() const { return length_; }  // of a row, in elements
  void pack(at::Tensor& row) const;           // this rank's partitions into a row in main memory
  struct Partition {
    Whole whole;
    int64_t first = 0;  // element of the whole, in its memory order
    at::Tensor values;  // flat; shares the row's memory
  };
  // What `rank` has packed into the row; partitions without elements are left out.
  std::vector<Partition> partitions(const at::Tensor& row, int64_t rank) const;

 private:
  struct Position {
    Whole whole;
    const FlatBlock* block = nullptr;
    int64_t part = 0;  // where the block's part begins in the row
  };
  std::vector<Position> positions() const;

  const Partitioning& partitioning_;
  std::vector<std::string> kinds_;          // "exp_avg.", ...; "": weights
  std::map<std::string, at::Tensor> mine_;  // kind and parameter -> this rank's partition
  std::vector<model::Named> shared_;
  int64_t length_ = 0;
};

// "exp_avg.", ... of a state's names "exp_avg.<parameter>"; the same on every rank, as every rank has every name.
std::set<std::string> state_kinds(const std::vector<model::Named>& state, const std::vector<FlatBlock>& rows);

}  // namespace lockstep::step
