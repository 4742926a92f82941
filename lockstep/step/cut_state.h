// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/step/shards.h"

namespace lockstep::step {

// What a checkpoint keeps of ranks that have pieces of it (training.zero), without gathering it: a rank's pieces lie in
// one row of floats, as long on every rank, which another rank can be handed and knows the contents of.
// The shards and the tensors outlive it.
class CutState {
 public:
  // `state`: an optimizer's, of the shards' pieces, and what else every rank has alike.
  CutState(const Shards& shards, const std::vector<model::Named>& state);

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
  void pack(at::Tensor& row) const;           // this rank's pieces into a row in main memory
  struct Piece {
    Whole whole;
    int64_t first = 0;  // element of the whole, in its memory order
    at::Tensor values;  // flat; shares the row's memory
  };
  // What `rank` has packed into the row; pieces without elements are left out.
  std::vector<Piece> pieces(const at::Tensor& row, int64_t rank) const;

 private:
  struct Place {
    Whole whole;
    const FlatBlock* block = nullptr;
    int64_t part = 0;  // where the block's part begins in the row
  };
  std::vector<Place> places() const;

  const Shards& shards_;
  std::vector<std::string> kinds_;          // "exp_avg.", ...; "": weights
  std::map<std::string, at::Tensor> mine_;  // kind and parameter -> this rank's piece
  std::vector<model::Named> shared_;
  int64_t length_ = 0;
};

// "exp_avg.", ... of a state's names "exp_avg.<parameter>"; the same on every rank, as every rank has every name.
std::set<std::string> state_kinds(const std::vector<model::Named>& state, const std::vector<FlatBlock>& rows);

}  // namespace lockstep::step
