// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/features.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lockstep/run/order.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/precision.h"

namespace lockstep::training {
namespace {

constexpr int64_t kRowsAtOnce = 4096;  // of one exchange: far below MPI's 2^31 elements for any head's input
constexpr int64_t kBytesAtOnce = int64_t{16} << 20;

model::Bundle no_rows_yet(const model::Bundle& values, int64_t num_samples) {
  model::Bundle all;
  for (const at::Tensor& value : values) {
    auto shape = value.sizes().vec();
    shape[0] = num_samples;
    all.push_back(at::zeros(shape));
  }
  return all;
}

// A field of all samples, over the memory of its values: the bytes can be added up as they are, for all ranks but one
// have zeros.
at::Tensor bytes_of(task::FieldValues& values) {
  return at::from_blob(values.bytes.data(), {static_cast<int64_t>(values.bytes.size())}, at::kByte);
}

void fill_own_rows(Features& features, const model::Bundle& values, const loader::Batch& batch, int64_t num_samples) {
  if (features.values.empty()) features.values = no_rows_yet(values, num_samples);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
    for (size_t k = 0; k < values.size(); ++k) features.values[k][id].copy_(values[k][i]);
    for (auto& all : features.fields) {
      std::memcpy(all.row(id), batch.field(all.field.name).values<std::byte>(i),
                  static_cast<size_t>(all.field.bytes()));
    }
    features.was_read[static_cast<size_t>(id)] = batch.was_read[static_cast<size_t>(i)];
  }
}

// One sample of zeros, as the network takes it.
model::Bundle blank_inputs(const model::Network& network, const task::Task& task, at::Device device) {
  model::NamedTensors fields;
  for (const task::Field& field : task.fields()) {
    std::vector<int64_t> shape{1};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    fields.set(field.name, at::zeros(shape, at::TensorOptions(device)));
  }
  return network.inputs_from(fields);
}

bool any_rank(bool mine, comm::Group& group) {
  at::Tensor flag = at::full({1}, mine ? 1 : 0, at::kLong);
  group.all_reduce_sum(flag);
  return flag.item<int64_t>() > 0;
}

// Every row is zero on all ranks but one: the sum is exact, of bytes too.
void exchange(Features& features, int64_t num_samples, comm::Group& group) {
  if (group.size() == 1) return;
  for (const at::Tensor& value : features.values) {
    for (int64_t start = 0; start < num_samples; start += kRowsAtOnce) {
      at::Tensor part = value.narrow(0, start, std::min(kRowsAtOnce, num_samples - start));
      group.all_reduce_sum(part);
    }
  }
  const auto sum_bytes = [&](at::Tensor bytes) {
    for (int64_t start = 0; start < bytes.numel(); start += kBytesAtOnce) {
      at::Tensor part = bytes.narrow(0, start, std::min(kBytesAtOnce, bytes.numel() - start));
      at::Tensor sums = part.to(at::kInt);
      group.all_reduce_sum(sums);
      part.copy_(sums);
    }
  };
  for (auto& values : features.fields) sum_bytes(bytes_of(values));
  sum_bytes(at::from_blob(features.was_read.data(), {num_samples}, at::kByte));
}

// The fields of some samples, as a loader would give them.
loader::Batch batch_of(const Features& features, const std::vector<int64_t>& ids) {
  loader::Batch batch;
  batch.sample_ids = ids;
  for (const auto& all : features.fields) {
    task::FieldValues& values = batch.fields.emplace_back();
    values.field = all.field;
    for (const int64_t id : ids) {
      const auto* row = all.values<std::byte>(id);
      values.bytes.insert(values.bytes.end(), row, row + all.field.bytes());
    }
  }
  for (const int64_t id : ids) batch.was_read.push_back(features.was_read[static_cast<size_t>(id)]);
  return batch;
}

}  // namespace

int64_t Features::bytes() const {
  int64_t all = 0;
  for (const at::Tensor& value : values) all += static_cast<int64_t>(value.nbytes());
  return all;
}

int64_t feature_row_bytes(const model::Network& network, size_t to, const spec::Job& job, at::Device device) {
  const c10::AutoGradMode no_gradients(false);
  int64_t values = 0;
  for (const at::Tensor& value :
       network.run(blank_inputs(network, *task::make_task(job), device), model::Mode::evaluate, 0, to)) {
    values += value.numel();
  }
  return values * static_cast<int64_t>(sizeof(float));
}

std::vector<run::FeatureNeeds> feature_needs(const spec::Job& job, const model::Network& network, at::Device device,
                                             int64_t samples) {
  std::vector<run::FeatureNeeds> all;
  for (const spec::Phase& phase : job.training.phases) {
    if (!phase.cache_features) continue;
    const size_t to = network.index_of(phase.train_from);
    all.push_back({phase.train_from, samples, feature_row_bytes(network, to, job, device)});
  }
  return all;
}

std::optional<Features> compute_features(const model::Network& network, const task::Task& task, loader::Loader& loader,
                                         int64_t num_samples, comm::Group& group, const FeatureRequest& request) {
  const c10::AutoGradMode no_gradients(false);
  const step::PassPrecision precision(network, request.precision, request.device);
  Features features;
  features.from = request.to;
  features.was_read.resize(static_cast<size_t>(num_samples));
  const auto& inputs = network.interface().inputs;
  for (const task::Field& field : task.fields()) {
    if (std::find(inputs.begin(), inputs.end(), field.name) != inputs.end()) continue;
    features.fields.push_back({field, std::vector<std::byte>(static_cast<size_t>(num_samples * field.bytes()))});
  }
  const auto frozen = [&](model::Bundle values) {
    for (auto& value : values) value = value.to(request.device, step::compute_type(request.precision));
    values = network.run(std::move(values), model::Mode::evaluate, 0, request.to);
    for (auto& value : values) value = value.to(at::kCPU, at::kFloat);
    return values;
  };
  int64_t seen = 0;
  for (loader::Batch batch = loader.next(); batch.global_size > 0; batch = loader.next()) {
    if (any_rank(request.stop(), group)) return std::nullopt;
    seen += batch.size();
    if (batch.size() > 0) {
      const auto samples = step::to_samples(batch, request.device);
      fill_own_rows(features, frozen(network.inputs_from(samples.fields)), batch, num_samples);
    }
    if (request.seen) request.seen(seen);
  }
  // More ranks than samples leave some without a share; they need the shape all the same.
  if (features.values.empty()) {
    features.values = no_rows_yet(frozen(blank_inputs(network, task, request.device)), num_samples);
  }
  exchange(features, num_samples, group);
  return features;
}

step::Samples feature_batch(const Features& features, const spec::Training& training, const run::LoaderState& state,
                            int64_t step, const comm::Group& group, at::Device device) {
  const run::Range range = run::batch_range(features.num_samples(), training.global_batch, state.consumed);
  const run::Range mine = run::rank_range(range, group.rank(), group.size());
  const run::Order order(features.num_samples(), state.seed, state.epoch);
  std::vector<int64_t> ids;
  for (int64_t i = mine.begin; i < mine.end; ++i) ids.push_back(order(i));
  const loader::Batch batch = batch_of(features, ids);
  step::Samples samples{step, state.epoch, range.size(), {}, batch.was_read, features.from};
  for (const auto& values : batch.fields) {
    samples.fields.set(values.field.name, step::host_values(values, batch.size())
                                              .to(device, /*non_blocking=*/false,
                                                  /*copy=*/true));
  }
  const at::Tensor rows = at::tensor(ids, at::kLong);
  for (const at::Tensor& value : features.values) samples.features.push_back(value.index_select(0, rows).to(device));
  return samples;
}

std::unique_ptr<task::Score> evaluate_features(const model::Network& network, const Features& features, int64_t batch,
                                               comm::Group& group, const step::EvaluateOptions& options) {
  const c10::AutoGradMode no_gradients(false);
  const step::PassPrecision precision(network, options.precision, options.device);
  const run::Range mine = run::rank_range({0, features.num_samples()}, group.rank(), group.size());
  auto score = options.task->score(options.worst);
  for (int64_t start = mine.begin; start < mine.end; start += batch) {
    const run::Range rows{start, std::min(start + batch, mine.end)};
    std::vector<int64_t> ids(static_cast<size_t>(rows.size()));
    std::iota(ids.begin(), ids.end(), rows.begin);
    model::Bundle values;
    for (const at::Tensor& value : features.values) {
      values.push_back(
          value.narrow(0, rows.begin, rows.size()).to(options.device, step::compute_type(options.precision)));
    }
    values = network.run(std::move(values), model::Mode::evaluate, features.from, network.blocks().size());
    const auto host = options.objective->scored(network.outputs_from(values));
    const loader::Batch samples = batch_of(features, ids);
    score->add(step::plain_rows(samples, host));
  }
  step::merge_over_ranks(*score, group);
  return score;
}

}  // namespace lockstep::training
