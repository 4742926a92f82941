// SPDX-License-Identifier: Apache-2.0
// Knows one thing that libtorch keeps to itself: the hook behind the place where a parameter's gradient is added up
// (set_post_acc_grad_hooks). Level 2 takes the gradient away there, as soon as it is known.
#include "lockstep/step/partitioning.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/step/chunk_norm.h"
#include "lockstep/step/cut_state.h"
#include "lockstep/step/reducer.h"

namespace lockstep::step {
namespace {

// Sums whose whole gradients still occupy memory: one that travels while the next block computes, and that one's.
constexpr size_t kUnderWay = 2;

}  // namespace

// Tells when a parameter has its gradient.
class Partitioning::Arrival final : public torch::autograd::PostAccumulateGradHook {
 public:
  Arrival(Partitioning& partitioning, size_t row, const Slot& slot)
      : partitioning_(partitioning), row_(row), slot_(slot) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    partitioning_.arrived(row_, slot_, parameter);
  }

 private:
  Partitioning& partitioning_;
  size_t row_;
  const Slot& slot_;
};

Partitioning::Partitioning(model::Network& network, size_t from, comm::Group& group, int64_t level)
    : network_(network),
      group_(group),
      level_(level),
      rows_(flat_blocks(network, from, group.size())),
      row_of_block_(network.blocks().size(), -1),
      summed_(rows_.size(), false),
      arrived_(rows_.size()),
      missing_(rows_.size(), 0) {
  base::ensure(group.size() > 1 && level >= 1 && level <= 3, "what is cut over the ranks is cut over several");
  for (size_t k = 0; k < rows_.size(); ++k) {
    row_of_block_[rows_[k].block] = static_cast<int64_t>(k);
    if (level_ == 3) weights_.push_back(zeros(rows_[k].part));
    if (level_ >= 2) sums_.push_back(zeros(rows_[k].part));
    for (const auto& slot : rows_[k].slots) {
      if (level_ == 2) {
        torch::autograd::impl::set_post_acc_grad_hooks(parameter(rows_[k], slot),
                                                       std::make_unique<Arrival>(*this, k, slot));
      }
    }
  }
}

Partitioning::~Partitioning() {
  if (level_ != 2) return;
  for (const auto& flat : rows_) {
    for (const auto& slot : flat.slots) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter(flat, slot), nullptr);
    }
  }
}

at::Tensor& Partitioning::parameter(const FlatBlock& flat, const Slot& slot) const {
  return network_.blocks()[flat.block]->parameters[slot.index].tensor;
}

at::Tensor Partitioning::empty(int64_t numel) const {
  const at::Tensor& like = parameter(rows_.front(), rows_.front().slots.front());
  return at::empty({numel}, at::TensorOptions(like.device()).dtype(at::kFloat));
}

std::vector<model::Named> Partitioning::partitions() const {
  std::vector<model::Named> all;
  for (size_t k = 0; k < rows_.size(); ++k) {
    for (const auto& slot : rows_[k].slots) {
      const Cut cut = cut_here(k, slot);
      all.push_back({slot.name, level_ == 3 ? partition_of_part(weights_[k], slot, cut)
                                            : partition_of_parameter(parameter(rows_[k], slot).detach(), slot, cut)});
    }
  }
  return all;
}

std::vector<model::Named> Partitioning::weight_partitions() const {
  if (level_ < 3) return {};
  if (!whole_) return partitions();
  std::vector<model::Named> all;
  for (size_t k = 0; k < rows_.size(); ++k) {
    for (const auto& slot : rows_[k].slots) {
      all.push_back({slot.name, partition_of_parameter(parameter(rows_[k], slot).detach(), slot, cut_here(k, slot))});
    }
  }
  return all;
}

std::vector<at::Tensor> Partitioning::gradients() const {
  std::vector<at::Tensor> all;
  for (size_t k = 0; k < rows_.size(); ++k) {
    for (const auto& slot : rows_[k].slots) {
      if (level_ >= 2) {
        all.push_back(partition_of_part(sums_[k], slot, cut_here(k, slot)));
        continue;
      }
      const at::Tensor gradient = parameter(rows_[k], slot).grad();
      base::ensure(gradient.defined(), base::text(slot.name, " has a gradient"));
      base::ensure(lies_as(gradient, slot), base::text("the gradient of ", slot.name, " lies as the parameter does"));
      all.push_back(partition_of_parameter(gradient, slot, cut_here(k, slot)));
    }
  }
  return all;
}

std::vector<double> Partitioning::norms(const std::vector<at::Tensor>& partitions) const {
  if (partitions.empty()) return {};
  at::Tensor squares = at::stack(at::_foreach_norm(partitions, 2)).to(at::kCPU, at::kDouble).square();
  group_.all_reduce_sum(squares);
  squares.sqrt_();
  return {squares.const_data_ptr<double>(), squares.const_data_ptr<double>() + squares.numel()};
}

double Partitioning::norm(const std::vector<at::Tensor>& partitions) const {
  double squares = 0;
  for (const double norm : norms(partitions)) squares += norm * norm;
  return std::sqrt(squares);
}

std::vector<double> Partitioning::chunk_norms(const std::vector<at::Tensor>& partitions) const {
  std::vector<at::Tensor> rows;
  std::vector<int64_t> counts;
  for (const auto& partition : partitions) {
    rows.push_back(partition.flatten());
    counts.push_back(partition.numel());
  }
  if (rows.empty()) return {};
  const auto everybodys = group_.all_gather(at::tensor(counts, at::kLong));
  int64_t most = 0;
  for (const auto& one : everybodys) most = std::max(most, one.sum().item<int64_t>());
  const at::Tensor mine = at::cat(rows);
  const auto gathered = group_.all_gather(at::constant_pad_nd(mine, {0, most - mine.numel()}));
  std::vector<double> norms;
  std::vector<int64_t> at_rank(everybodys.size(), 0);
  for (int64_t i = 0; i < static_cast<int64_t>(partitions.size()); ++i) {
    std::vector<at::Tensor> whole;  // parts of a parameter follow each other as the ranks do
    for (size_t rank = 0; rank < everybodys.size(); ++rank) {
      const int64_t count = everybodys[rank][i].item<int64_t>();
      whole.push_back(gathered[rank].narrow(0, at_rank[rank], count));
      at_rank[rank] += count;
    }
    norms.push_back(chunk_norm({at::cat(whole)}));
  }
  return norms;
}

void Partitioning::begin_step() {
  std::fill(summed_.begin(), summed_.end(), false);
  if (level_ == 3 && whole_) cut();
}

// The network's values are the truth while it has them: somebody may have loaded others.
void Partitioning::cut() {
  const c10::AutoGradMode no_graph(false);
  for (size_t k = 0; k < rows_.size(); ++k) {
    for (const auto& slot : rows_[k].slots) {
      at::Tensor& tensor = parameter(rows_[k], slot);
      const Cut cut = cut_here(k, slot);
      partition_of_part(weights_[k], slot, cut).copy_(partition_of_parameter(tensor.detach(), slot, cut));
      // Four bytes that look like all of them: whoever asks for the shape gets it, whoever copies into them gets an
      // error.
      tensor.set_data(at::zeros({1}, tensor.options().requires_grad(false)).expand(slot.sizes));
    }
  }
  whole_ = false;
}

void Partitioning::assemble() {
  if (level_ < 3 || whole_) return;
  const c10::AutoGradMode no_graph(false);
  for (size_t k = 0; k < rows_.size(); ++k) {
    const at::Tensor row = finish(start_gather(k, weights_[k]));
    for (const auto& slot : rows_[k].slots) {
      at::Tensor fresh = at::empty_strided(slot.sizes, slot.strides, row.options());
      parameter(rows_[k], slot).set_data(fresh.copy_(in_row(row, slot)));
    }
  }
  whole_ = true;
}

Partitioning::Gather Partitioning::start_gather(size_t row, at::Tensor part) const {
  Gather gather{row, std::move(part), empty(rows_[row].row), {}};
  gather.work = group_.group()->_allgather_base(gather.whole, gather.part);
  return gather;
}

at::Tensor Partitioning::finish(const Gather& gather) {
  wait(gather.work);
  return gather.whole;
}

void Partitioning::wait(const Work& work) {
  const double start = base::steady_seconds();
  work->wait();
  seconds_waited_ += base::steady_seconds() - start;
}

at::Tensor Partitioning::own_part(size_t row,
                                  const std::function<at::Tensor(const Slot&, const Cut&)>& partition) const {
  at::Tensor part = zeros(rows_[row].part);
  for (const auto& slot : rows_[row].slots) {
    const Cut cut = cut_here(row, slot);
    if (cut.count > 0) partition_of_part(part, slot, cut).copy_(partition(slot, cut));
  }
  return part;
}

void Partitioning::spread(size_t row, const at::Tensor& whole) {
  std::vector<at::Tensor> from, to;
  for (const auto& slot : rows_[row].slots) {
    from.push_back(in_row(whole, slot));
    to.push_back(parameter(rows_[row], slot).detach());
  }
  at::_foreach_copy_(to, from);
}

void Partitioning::gather() {
  if (level_ == 3) return;
  std::optional<Gather> before;
  for (size_t k = 0; k < rows_.size(); ++k) {
    Gather now = start_gather(k, own_part(k, [&](const Slot& slot, const Cut& cut) {
                                return partition_of_parameter(parameter(rows_[k], slot).detach(), slot, cut);
                              }));
    if (before) spread(before->row, finish(*before));
    before = std::move(now);
  }
  if (before) spread(before->row, finish(*before));
}

void Partitioning::begin_pass() {
  for (size_t k = 0; k < rows_.size(); ++k) {
    arrived_[k].reset();
    missing_[k] = rows_[k].slots.size();
  }
  next_ = static_cast<int64_t>(rows_.size()) - 1;
}

void Partitioning::arrived(size_t row, const Slot& slot, const at::Tensor& parameter) {
  const c10::AutoGradMode no_graph(false);
  if (!arrived_[row].defined()) arrived_[row] = zeros(rows_[row].row);
  in_row(arrived_[row], slot).copy_(parameter.grad());
  parameter.mutable_grad().reset();
  base::ensure(missing_[row]-- > 0, base::text(slot.name, " has one gradient in a pass"));
  start_ready();
}

// In the order of the blocks, whichever is ready first.
void Partitioning::start_ready() {
  while (next_ >= 0 && missing_[static_cast<size_t>(next_)] == 0) {
    const auto row = static_cast<size_t>(next_--);
    start_sum(row, std::move(arrived_[row]));
    arrived_[row].reset();
  }
}

void Partitioning::start_sum(size_t row, at::Tensor gradients) {
  if (under_way_.size() == kUnderWay) finish_oldest_sum();
  Sum sum{row, std::move(gradients), summed_[row] ? empty(rows_[row].part) : sums_[row], {}};
  sum.work = group_.group()->_reduce_scatter_base(sum.sum, sum.gradients);
  under_way_.push_back(std::move(sum));
}

void Partitioning::finish_oldest_sum() {
  const Sum sum = std::move(under_way_.front());
  under_way_.pop_front();
  wait(sum.work);
  if (summed_[sum.row]) sums_[sum.row].add_(sum.sum);
  summed_[sum.row] = true;
}

void Partitioning::end_pass() {
  if (level_ == 2) {
    for (; next_ >= 0; start_ready()) {  // parameters that had no part in this pass count as zeros
      const auto row = static_cast<size_t>(next_);
      if (!arrived_[row].defined()) arrived_[row] = zeros(rows_[row].row);
      missing_[row] = 0;
    }
  }
  while (!under_way_.empty()) finish_oldest_sum();
}

void Partitioning::pass_nothing() {
  begin_pass();
  if (level_ == 3) {
    for (const auto& flat : rows_) weights(flat.block, Pass::forward);
    for (auto flat = rows_.rbegin(); flat != rows_.rend(); ++flat) {
      weights(flat->block, Pass::backward);
      take_gradients(flat->block, std::vector<at::Tensor>(flat->slots.size()));
    }
  }
  end_pass();
}

std::vector<at::Tensor> Partitioning::weights(size_t block, Pass pass) {
  const auto row = static_cast<size_t>(row_of_block_[block]);
  if (!ahead_ || ahead_->row != row) ahead_ = start_gather(row, weights_[row]);
  const Gather mine = std::move(*ahead_);
  ahead_.reset();
  if (pass == Pass::forward && row + 1 < rows_.size()) ahead_ = start_gather(row + 1, weights_[row + 1]);
  if (pass == Pass::backward && row > 0) ahead_ = start_gather(row - 1, weights_[row - 1]);
  const at::Tensor whole = finish(mine);
  std::vector<at::Tensor> all;
  for (const auto& slot : rows_[row].slots) all.push_back(in_row(whole, slot));
  return all;
}

void Partitioning::take_gradients(size_t block, const std::vector<at::Tensor>& gradients) {
  const c10::AutoGradMode no_graph(false);
  const auto row = static_cast<size_t>(row_of_block_[block]);
  at::Tensor whole = zeros(rows_[row].row);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) in_row(whole, rows_[row].slots[i]).copy_(gradients[i]);
  }
  start_sum(row, std::move(whole));
}

std::vector<model::Named> Partitioning::whole_state(const std::vector<model::Named>& partitions, const Wanted& wanted) {
  std::map<std::string, at::Tensor> by_name;
  for (const auto& entry : partitions) by_name[entry.name] = entry.tensor;
  std::vector<model::Named> all;
  for (const auto& kind : state_kinds(partitions, rows_)) {
    for (size_t k = 0; k < rows_.size(); ++k) {
      const at::Tensor part =
          own_part(k, [&](const Slot& slot, const Cut&) { return by_name.at(base::text(kind, slot.name)); });
      const at::Tensor whole = finish(start_gather(k, part));
      for (const auto& slot : rows_[k].slots) {
        const std::string name = base::text(kind, slot.name);
        by_name.erase(name);
        if (wanted(name)) all.push_back({name, in_row(whole, slot).to(at::kCPU, at::kFloat, false, /*copy=*/true)});
      }
    }
  }
  for (auto& [name, tensor] : by_name) {
    if (wanted(name)) all.push_back({name, tensor});
  }
  return all;
}

std::vector<model::Named> Partitioning::partitions_of(const std::vector<model::Named>& whole) const {
  std::map<std::string, std::pair<size_t, const Slot*>> trained;
  for (size_t k = 0; k < rows_.size(); ++k) {
    for (const auto& slot : rows_[k].slots) trained[slot.name] = {k, &slot};
  }
  std::vector<model::Named> all;
  for (const auto& entry : whole) {
    const size_t dot = entry.name.find('.');
    const auto found = dot == std::string::npos ? trained.end() : trained.find(entry.name.substr(dot + 1));
    if (found == trained.end()) {
      all.push_back(entry);
      continue;
    }
    const auto& [row, slot] = found->second;
    if (entry.tensor.sizes().vec() != slot->sizes) continue;  // of another model: it will be missed, by name
    const at::Tensor laid = at::empty_strided(slot->sizes, slot->strides, entry.tensor.options()).copy_(entry.tensor);
    all.push_back({entry.name, partition_of_parameter(laid, *slot, cut_here(row, *slot)).clone()});
  }
  return all;
}

}  // namespace lockstep::step
