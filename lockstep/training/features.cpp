// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/features.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lockstep/run/order.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/precision.h"

namespace lockstep::training {
namespace {

constexpr int64_t kRowsAtOnce = 4096;  // of one exchange: far below MPI's 2^31 elements for any head's input

at::Tensor no_rows_yet(const at::Tensor& values, int64_t num_samples) {
  auto shape = values.sizes().vec();
  shape[0] = num_samples;
  return at::zeros(shape);
}

void fill_own_rows(Features& features, const at::Tensor& values, const loader::Batch& batch, int64_t num_samples) {
  if (!features.values.defined()) features.values = no_rows_yet(values, num_samples);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto k = static_cast<size_t>(i);
    features.values[batch.sample_ids[k]].copy_(values[i]);
    features.targets[batch.sample_ids[k]].fill_(batch.targets[k] + 1);  // 0: not mine, or unreadable
  }
}

bool any_rank(bool mine, comm::Group& group) {
  at::Tensor flag = at::full({1}, mine ? 1 : 0, at::kLong);
  group.all_reduce_sum(flag);
  return flag.item<int64_t>() > 0;
}

// Every row is zero on all ranks but one: the sum is exact.
void exchange(Features& features, int64_t num_samples, comm::Group& group) {
  for (int64_t start = 0; start < num_samples && group.size() > 1; start += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, num_samples - start);
    at::Tensor part = features.values.narrow(0, start, rows);
    group.all_reduce_sum(part);
  }
  group.all_reduce_sum(features.targets);
  features.targets.sub_(1);
}

// The rows that could be read. logits: [samples, classes], of the samples from `first` on.
void add_known(task::Metrics& metrics, const at::Tensor& logits, const at::Tensor& targets, int64_t first) {
  const at::Tensor known = targets.ge(0).nonzero().flatten();
  const at::Tensor rows = logits.index_select(0, known).contiguous();
  const at::Tensor labels = targets.index_select(0, known).contiguous();
  const at::Tensor ids = known.add(first).contiguous();
  const auto count = static_cast<size_t>(known.numel());
  metrics.add({rows.const_data_ptr<float>(), static_cast<size_t>(rows.numel())},
              {labels.const_data_ptr<int64_t>(), count}, {ids.const_data_ptr<int64_t>(), count});
}

}  // namespace

int64_t feature_row_bytes(const model::Network& network, size_t to, int64_t image_size, at::Device device) {
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor image = at::zeros({1, 3, image_size, image_size}, at::TensorOptions(device));
  const int64_t values = network.run(image, model::Mode::evaluate, 0, to).numel();
  return values * static_cast<int64_t>(sizeof(float));
}

std::vector<run::FeatureNeeds> feature_needs(const spec::Job& job, const model::Network& network, at::Device device,
                                             int64_t samples) {
  std::vector<run::FeatureNeeds> all;
  for (const spec::Phase& phase : job.training.phases) {
    if (!phase.cache_features) continue;
    const size_t to = network.index_of(phase.train_from);
    all.push_back({phase.train_from, samples, feature_row_bytes(network, to, job.data.image_size, device)});
  }
  return all;
}

std::optional<Features> compute_features(const model::Network& network, loader::Loader& loader, int64_t num_samples,
                                         comm::Group& group, const FeatureRequest& request) {
  const c10::AutoGradMode no_gradients(false);
  const step::PassPrecision precision(network, request.precision, request.device);
  Features features;
  features.from = request.to;
  features.targets = at::zeros({num_samples}, at::kLong);
  const auto frozen = [&](const at::Tensor& images) {
    const auto type = step::compute_type(request.precision);
    return network.run(images.to(request.device, type), model::Mode::evaluate, 0, request.to).to(at::kCPU, at::kFloat);
  };
  int64_t seen = 0;
  int64_t size = 1;
  for (loader::Batch batch = loader.next(); batch.global_size > 0; batch = loader.next()) {
    if (any_rank(request.stop(), group)) return std::nullopt;
    seen += batch.size();
    size = batch.image_size;
    if (batch.size() > 0) {
      fill_own_rows(features, frozen(step::to_samples(batch, request.device).values), batch, num_samples);
    }
    if (request.seen) request.seen(seen);
  }
  // More ranks than samples leave some without a share; they need the shape all the same.
  if (!features.values.defined()) features.values = no_rows_yet(frozen(at::zeros({1, 3, size, size})), num_samples);
  exchange(features, num_samples, group);
  return features;
}

step::Samples feature_batch(const Features& features, const spec::Training& training, const run::LoaderState& state,
                            int64_t step, const comm::Group& group, at::Device device) {
  const run::Range batch = run::batch_range(features.num_samples(), training.global_batch, state.consumed);
  const run::Range mine = run::rank_range(batch, group.rank(), group.size());
  const run::Order order(features.num_samples(), state.seed, state.epoch);
  std::vector<int64_t> ids;
  for (int64_t i = mine.begin; i < mine.end; ++i) ids.push_back(order(i));
  const at::Tensor rows = at::tensor(ids, at::kLong);
  return {step,
          state.epoch,
          batch.size(),
          features.values.index_select(0, rows).to(device),
          features.targets.index_select(0, rows).to(device),
          features.from};
}

task::Metrics evaluate_features(const model::Network& network, const Features& features, int64_t batch,
                                comm::Group& group, const step::EvaluateOptions& options) {
  const c10::AutoGradMode no_gradients(false);
  const step::PassPrecision precision(network, options.precision, options.device);
  const run::Range mine = run::rank_range({0, features.num_samples()}, group.rank(), group.size());
  task::Metrics metrics(options.classes, options.worst);
  for (int64_t start = mine.begin; start < mine.end; start += batch) {
    const run::Range rows{start, std::min(start + batch, mine.end)};
    const at::Tensor values = features.values.narrow(0, rows.begin, rows.size());
    const at::Tensor logits = network.run(values.to(options.device, step::compute_type(options.precision)),
                                          model::Mode::evaluate, features.from, network.blocks().size());
    add_known(metrics, logits.to(at::kCPU, at::kFloat), features.targets.narrow(0, rows.begin, rows.size()),
              rows.begin);
  }
  return step::over_ranks(metrics, group);
}

}  // namespace lockstep::training
