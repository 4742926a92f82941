// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/comm/group.h"
#include "lockstep/step/flat_block.h"
#include "lockstep/step/recompute.h"

namespace lockstep::step {

// ZeRO (training.zero; Rajbhandari et al. 2020): each rank keeps its partitions only, and this class exchanges them.
// flat_block.h says how parameters are cut; frozen blocks are not.
//   1  the optimizer moves this rank's partitions of the network's parameters; gather() spreads them. Gradients are
//      whole.
//   2  besides, a block's gradients are summed over the ranks as soon as backward has the last of them, and each rank
//      keeps its part of the sum. Once for every micro-batch: accumulating whole gradients would cost what this saves.
//   3  besides, the network's parameters have no memory of their own while steps are taken: weights() gathers a block's
//      for as long as it runs, forward and, since its activations are computed again, backward.
// Collectives are started in the order of the blocks, forward up, backward down: the same on every rank, also on one
// without rows (pass_nothing). Those of the next block are under way while one computes.
// REQUIRES: more than one rank. The network and the group outlive it.
class Partitioning final : public WeightSource {
 public:
  Partitioning(model::Network& network, size_t from, comm::Group& group, int64_t level);
  ~Partitioning() override;

  int64_t level() const { return level_; }
  bool sums_gradients() const { return level_ >= 2; }  // else the gradient path sums whole ones
  // What this rank's optimizer updates: a partition of every trained parameter, which may be empty. The update of an
  // element does not depend on the cut; norms of whole parameters are norms().
  std::vector<model::Named> partitions() const;

  // Drops the gradients of the step before. Level 3: takes the weights out of the network, if they are in it.
  void begin_step();
  // Levels 2 and 3: called before and after each backward. When end_pass returns, the sums include this pass.
  void begin_pass();
  void end_pass();
  // Levels 2 and 3: called instead of both by a rank that has nothing to compute in a pass of the others.
  void pass_nothing();
  // The gradients of the partitions, in their order, summed over the ranks. Level 1 REQUIRES that those of the
  // parameters are summed.
  std::vector<at::Tensor> gradients() const;
  // The 2-norm of each whole parameter (or its gradient, its update), and of all of them together, from every rank's
  // partitions. Every rank calls it.
  std::vector<double> norms(const std::vector<at::Tensor>& partitions) const;
  double norm(const std::vector<at::Tensor>& partitions) const;
  // The same as norms(), with the bits of chunk_norm.h: it puts the partitions together.
  std::vector<double> chunk_norms(const std::vector<at::Tensor>& partitions) const;
  // After the update. Levels 1 and 2: every rank's partitions into everybody's network. Level 3: nothing.
  void gather();

  // Level 3: makes the network's parameters whole until begin_step, which takes them back with the values they have
  // then. For an evaluation, a checkpoint, or other weights. Every rank calls it.
  void assemble();

  // An optimizer's state of partitions ("momentum.<parameter>", for every parameter) as whole tensors in main memory,
  // of those names that are `wanted`; and back. Every rank calls the first one. Other entries pass unchanged.
  using Wanted = std::function<bool(const std::string&)>;
  std::vector<model::Named> whole_state(const std::vector<model::Named>& partitions, const Wanted& wanted);
  std::vector<model::Named> partitions_of(const std::vector<model::Named>& whole) const;

  const std::vector<at::Tensor>& weight_parts() const { return weights_; }  // level 3, one a block
  // Level 3: this rank's partitions of the weights as they are now, in the network or here. They share its memory.
  std::vector<model::Named> weight_partitions() const;
  const std::vector<FlatBlock>& rows() const { return rows_; }  // how the parameters are cut
  int64_t rank() const { return group_.rank(); }
  double seconds_waited() const { return seconds_waited_; }

  // WeightSource: level 3.
  bool holds(size_t block) const override { return row_of_block_[block] >= 0 && level_ == 3; }
  std::vector<at::Tensor> weights(size_t block, Pass pass) override;
  void take_gradients(size_t block, const std::vector<at::Tensor>& gradients) override;

 private:
  class Arrival;
  using Work = c10::intrusive_ptr<c10d::Work>;
  struct Gather {
    size_t row = 0;
    at::Tensor part, whole;
    Work work;
  };
  struct Sum {  // of a block's gradients, under way
    size_t row = 0;
    at::Tensor gradients;  // whole, of this rank
    at::Tensor sum;        // this rank's part
    Work work;
  };
  at::Tensor& parameter(const FlatBlock& flat, const Slot& slot) const;
  Gather start_gather(size_t row, at::Tensor part) const;
  at::Tensor finish(const Gather& gather);
  void wait(const Work& work);
  Cut cut_here(size_t row, const Slot& slot) const { return cut_of(rows_[row], slot, group_.rank()); }
  at::Tensor own_part(size_t row, const std::function<at::Tensor(const Slot&, const Cut&)>& partition) const;
  void spread(size_t row, const at::Tensor& whole);
  void arrived(size_t row, const Slot& slot, const at::Tensor& parameter);
  void start_ready();
  void start_sum(size_t row, at::Tensor gradients);
  void finish_oldest_sum();
  void cut();
  at::Tensor empty(int64_t numel) const;
  at::Tensor zeros(int64_t numel) const { return empty(numel).zero_(); }

  model::Network& network_;
  comm::Group& group_;
  int64_t level_;
  std::vector<FlatBlock> rows_;
  std::vector<int64_t> row_of_block_;  // -1: not cut
  std::vector<at::Tensor> weights_;    // level 3: this rank's part of each row
  std::vector<at::Tensor> sums_;       // levels 2 and 3: likewise, of the gradients
  std::vector<bool> summed_;           // the row has a pass of this step in its sum
  bool whole_ = true;                  // the network has the weights
  std::optional<Gather> ahead_;        // level 3: of the block that runs next
  std::deque<Sum> under_way_;
  // Level 2, of the pass: what has arrived.
  std::vector<at::Tensor> arrived_;  // by row; undefined: none yet
  std::vector<size_t> missing_;      // parameters without a gradient yet
  int64_t next_ = -1;                // the row whose sum is started next
  double seconds_waited_ = 0;
};

}  // namespace lockstep::step
