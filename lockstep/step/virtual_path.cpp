// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_path.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/rank_rules.h"
#include "lockstep/step/chunk_norm.h"

namespace lockstep::step {
namespace {

// For its lifetime a network draws the random numbers of (seed, step, slice).
class SliceRandom {
 public:
  SliceRandom(const model::Network& network, const StepOptions& options, int64_t step, int64_t slice)
      : network_(network) {
    base::Random random(base::derive_seed(static_cast<uint64_t>(options.training.seed), "dropout"),
                        static_cast<uint32_t>(slice), static_cast<uint64_t>(step));
    const uint64_t seed = random.bits64();
    if (!options.device.is_cpu()) {
      at::manual_seed(seed);  // one slice at a time: libtorch's own generators will do
      return;
    }
    const at::Generator generator = at::detail::createCPUGenerator(seed);
    for (const auto& block : network.blocks()) block->random = generator;
  }
  ~SliceRandom() {
    for (const auto& block : network_.blocks()) block->random.reset();
  }
  SliceRandom(const SliceRandom&) = delete;
  SliceRandom& operator=(const SliceRandom&) = delete;

 private:
  const model::Network& network_;
};

int64_t lanes_for(const model::Network& network, const StepOptions& options, const comm::Group& group) {
  const auto& training = options.training;
  spec::check_slices_on_ranks(training, group.size());
  if (!options.device.is_cpu() || !network.has_twins()) return 1;
  const int64_t most = (training.virtual_ranks + group.size() - 1) / group.size();
  return std::clamp<int64_t>(at::get_num_threads() / training.threads_per_slice, 1, most);
}

}  // namespace

struct VirtualPath::Lane {
  // With the network itself, or with a twin of it. `trained` of its parameters, the last ones, are trained.
  Lane(const model::Network& of, std::optional<model::Network> its_twin, const StepOptions& options, size_t trained)
      : twin(std::move(its_twin)),
        network(twin ? *twin : of),
        pass(network, options),
        statistics(network, options.norms_from(network)) {
    const auto all = network.parameters();
    for (size_t i = all.size() - trained; i < all.size(); ++i) parameters.push_back(all[i].tensor);
  }
  std::optional<model::Network> twin;
  const model::Network& network;
  Pass pass;
  BatchStatistics statistics;
  Tensors parameters;
};

VirtualPath::VirtualPath(const model::Network& network, const std::vector<model::Named>& parameters, comm::Group& group,
                         const StepOptions& options)
    : group_(group),
      options_(options),
      threads_(lanes_for(network, options, group), options.training.threads_per_slice) {
  while (static_cast<int64_t>(lanes_.size()) < threads_.lanes()) {
    lanes_.push_back(
        std::make_unique<Lane>(network, lanes_.empty() ? std::nullopt : network.twin(), options, parameters.size()));
  }
}

VirtualPath::~VirtualPath() = default;

BatchSums VirtualPath::run(const Samples& samples, double scale, bool want_stop) {
  const Slices slices(samples.global_size, options_.training.virtual_ranks);
  const run::Range mine = slices.of_rank(group_.rank(), group_.size());
  const int64_t first_row = slices.rows(mine.begin).begin;
  base::ensure(slices.rows(mine.end - 1).end - first_row == samples.rows(), "a rank has the rows of its slices");
  const bool has_statistics = !lanes_[0]->statistics.empty();
  if (has_statistics) kept_ = lanes_[0]->statistics.flat();

  TreeSum<Tensors> tree(add_tensors);
  std::vector<PassSums> rows;
  std::vector<SliceResult> results(lanes_.size());
  for (int64_t first = mine.begin; first < mine.end; first += threads_.lanes()) {
    const int64_t count = std::min(threads_.lanes(), mine.end - first);
    threads_.run([&](int64_t lane) {
      if (lane >= count) return;
      const run::Range range = slices.rows(first + lane);
      const Samples part = samples.slice(range.begin - first_row, range.size());
      results[static_cast<size_t>(lane)] = run_slice(*lanes_[static_cast<size_t>(lane)], part,
                                                     static_cast<double>(samples.global_size) / scale, first + lane);
    });
    for (int64_t lane = 0; lane < count; ++lane) {
      SliceResult& result = results[static_cast<size_t>(lane)];
      tree.push({first + lane, 1}, std::exchange(result.sums, std::nullopt));
      rows.push_back(result.rows);
    }
  }

  Tensors like = lanes_[0]->parameters;
  if (has_statistics) like.push_back(kept_);
  const Tensors total = exchange_partials(group_, slices, tree.take(), like);
  for (size_t i = 0; i < lanes_[0]->parameters.size(); ++i) lanes_[0]->parameters[i].mutable_grad() = total[i];
  if (has_statistics) {
    lanes_[0]->statistics.write(kept_);
    merged_ = total.back();
  }
  return sum_rows(rows, slices, mine.begin, want_stop);
}

// The gradients of one slice, and its statistics weighted by its share of the batch.
VirtualPath::SliceResult VirtualPath::run_slice(const Lane& lane, const Samples& part, double divisor,
                                                int64_t slice) const {
  SliceResult result;
  if (part.rows() == 0) return result;
  // Kernels may choose their way by where a tensor begins, and within a rank's share that depends on the ranks.
  Samples own = part;
  for (auto& field : own.fields) field.tensor = field.tensor.clone();
  for (auto& feature : own.features) feature = feature.clone();
  BatchStatistics statistics = lane.statistics;
  if (kept_.defined()) statistics.write(kept_);
  {
    const SliceRandom random(lane.network, options_, part.step, slice);
    result.rows = lane.pass.run(own, divisor);
  }
  Tensors sums;
  for (const at::Tensor& parameter : lane.parameters) {
    base::ensure(parameter.grad().defined(), "every trained parameter has a gradient");
    sums.push_back(parameter.grad());
    parameter.mutable_grad().reset();
  }
  if (kept_.defined()) {
    const at::Tensor now = statistics.flat();
    const double share = static_cast<double>(part.rows()) / static_cast<double>(part.global_size);
    sums.push_back(at::where(at::isfinite(now), now, kept_).mul_(share));
  }
  result.sums = std::move(sums);
  return result;
}

// Every slice's row is zero on all ranks but one, so the sum over the ranks is exact; the tree follows everywhere.
BatchSums VirtualPath::sum_rows(const std::vector<PassSums>& mine, const Slices& slices, int64_t first,
                                bool want_stop) {
  const int64_t num_totals = lanes_[0]->pass.num_totals();
  at::Tensor table = at::zeros({slices.count() + 1, num_totals + 1}, at::kDouble);
  auto rows = table.accessor<double, 2>();
  const auto slice_of = [&](size_t i) { return first + static_cast<int64_t>(i); };
  for (size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].totals.defined()) table[slice_of(i)].narrow(0, 0, num_totals).copy_(mine[i].totals);
  }
  // Behind the copies: one from a simulated device leaves zeros in all of the table.
  for (size_t i = 0; i < mine.size(); ++i) rows[slice_of(i)][num_totals] = static_cast<double>(mine[i].samples);
  rows[slices.count()][0] = want_stop ? 1 : 0;
  group_.all_reduce_sum(table);
  TreeSum<std::vector<double>> tree([](std::vector<double>& left, const std::vector<double>& right) {
    for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  });
  for (int64_t slice = 0; slice < slices.count(); ++slice) {
    const double* sums = table[slice].const_data_ptr<double>();
    const bool empty = slices.rows(slice).size() == 0;
    tree.push({slice, 1}, empty ? std::nullopt : std::optional(std::vector<double>(sums, sums + num_totals + 1)));
  }
  BatchSums result;
  result.totals = *tree.take()[0].value;
  result.samples = static_cast<int64_t>(result.totals.back());
  result.totals.pop_back();
  result.stop = rows[slices.count()][0] > 0;
  return result;
}

double VirtualPath::norm(const std::vector<at::Tensor>& gradients) const {
  return chunk_norm(gradients);
}

void VirtualPath::take_statistics(const Samples& /*samples*/) {
  if (merged_.defined()) lanes_[0]->statistics.write(merged_);
}

void VirtualPath::drop_statistics() {}  // run() has left them as they were

}  // namespace lockstep::step
