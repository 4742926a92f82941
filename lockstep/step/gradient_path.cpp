// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/gradient_path.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/random.h"
#include "lockstep/step/parts_path.h"
#include "lockstep/step/reduced_path.h"
#include "lockstep/step/virtual_path.h"

namespace lockstep::step {

void seed_dropout(const StepOptions& options, int64_t rank, int64_t step) {
  base::Random random(base::derive_seed(static_cast<uint64_t>(options.training.seed), "dropout"),
                      static_cast<uint32_t>(rank), static_cast<uint64_t>(step));
  at::manual_seed(random.bits64());
}

BatchSums over_ranks(const PassSums& mine, int64_t num_totals, bool want_stop, comm::Group& group) {
  at::Tensor all = at::zeros({num_totals + 2}, at::kDouble);
  double* values = all.mutable_data_ptr<double>();
  if (mine.totals.defined()) all.narrow(0, 0, num_totals).copy_(mine.totals);
  values[num_totals] = static_cast<double>(mine.samples);
  values[num_totals + 1] = want_stop ? 1 : 0;
  group.all_reduce_sum(all);
  return {{values, values + num_totals}, static_cast<int64_t>(values[num_totals]), values[num_totals + 1] > 0};
}

std::unique_ptr<GradientPath> make_gradient_path(const model::Network& network,
                                                 const std::vector<model::Named>& parameters, comm::Group& group,
                                                 const StepOptions& options, Partitioning* partitioning,
                                                 const DeviceUpdate* update) {
  if (options.training.virtual_ranks > 0) {
    return std::make_unique<VirtualPath>(network, parameters, group, options);
  }
  if (partitioning && partitioning->sums_gradients())
    return std::make_unique<PartsPath>(network, group, options, *partitioning);
  return std::make_unique<ReducedPath>(network, parameters, group, options, update);
}

}  // namespace lockstep::step
