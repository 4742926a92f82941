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

#include "lockstep/base/json.h"
#include "lockstep/base/random.h"
#include "lockstep/run/order.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/views.h"

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

void fill_own_rows(Features& features, const std::vector<model::Bundle>& views, const loader::Batch& batch,
                   int64_t num_samples) {
  if (features.views.empty()) {
    for (const auto& values : views) features.views.push_back(no_rows_yet(values, num_samples));
  }
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
    for (size_t v = 0; v < views.size(); ++v) {
      for (size_t k = 0; k < views[v].size(); ++k) features.views[v][k][id].copy_(views[v][k][i]);
    }
    for (auto& all : features.fields) {
      std::memcpy(all.row(id), batch.field(all.field.name).values<std::byte>(i),
                  static_cast<size_t>(all.field.bytes()));
    }
    features.was_read[static_cast<size_t>(id)] = batch.was_read[static_cast<size_t>(i)];
    if (batch.annotations.empty()) continue;
    features.annotations.resize(static_cast<size_t>(num_samples));
    features.annotations[static_cast<size_t>(id)] = batch.annotations[static_cast<size_t>(i)];
  }
}

// Every rank has those of its own samples.
void exchange_annotations(std::vector<std::string>& annotations, int64_t num_samples, comm::Group& group) {
  base::Json mine = base::Json::array();
  for (size_t id = 0; id < annotations.size(); ++id) {
    if (!annotations[id].empty()) mine.push_back(base::Json::array({base::Json(id), base::Json(annotations[id])}));
  }
  for (const auto& words : comm::gather_texts(group, mine.dump(-1))) {
    const base::Json theirs = base::parse_json(words, "annotations of a rank", {.max_bytes = size_t{1} << 30});
    for (const auto& row : theirs.items()) {
      annotations.resize(static_cast<size_t>(num_samples));
      annotations[static_cast<size_t>(row.items()[0].as_int())] = row.items()[1].as_string();
    }
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
  for (const model::Bundle& values : features.views) {
    for (const at::Tensor& value : values) {
      for (int64_t start = 0; start < num_samples; start += kRowsAtOnce) {
        at::Tensor part = value.narrow(0, start, std::min(kRowsAtOnce, num_samples - start));
        group.all_reduce_sum(part);
      }
    }
  }
  const auto sum_bytes = [&](const at::Tensor& bytes) {
    for (int64_t start = 0; start < bytes.numel(); start += kBytesAtOnce) {
      at::Tensor part = bytes.narrow(0, start, std::min(kBytesAtOnce, bytes.numel() - start));
      at::Tensor sums = part.to(at::kInt);
      group.all_reduce_sum(sums);
      part.copy_(sums);
    }
  };
  for (auto& values : features.fields) sum_bytes(bytes_of(values));
  sum_bytes(at::from_blob(features.was_read.data(), {num_samples}, at::kByte));
  exchange_annotations(features.annotations, num_samples, group);
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
  for (const int64_t id : ids) {
    if (!features.annotations.empty()) batch.annotations.push_back(features.annotations[static_cast<size_t>(id)]);
  }
  return batch;
}

// Which view of each sample an epoch takes: int64 [ids].
at::Tensor drawn_views(size_t num_views, const std::vector<int64_t>& ids, const run::LoaderState& state) {
  std::vector<int64_t> drawn;
  for (const int64_t id : ids) {
    base::Random random(base::derive_seed(static_cast<uint64_t>(state.seed), "view of cached features"),
                        static_cast<uint32_t>(state.epoch), static_cast<uint64_t>(id));
    drawn.push_back(random.below(static_cast<int64_t>(num_views)));
  }
  return at::tensor(drawn, at::kLong);
}

}  // namespace

int64_t Features::bytes() const {
  int64_t all = 0;
  for (const model::Bundle& values : views) {
    for (const at::Tensor& value : values) all += static_cast<int64_t>(value.nbytes());
  }
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
    const int64_t views = std::max<int64_t>(phase.cache_flips ? 2 : 1, step::num_views(job.evaluation.views));
    all.push_back({phase.train_from, samples, views * feature_row_bytes(network, to, job, device)});
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
    for (auto& value : values) value = value.to(request.device);
    values = network.cast(std::move(values), step::compute_type(request.precision));
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
      std::vector<model::Bundle> views;
      for (const auto& view : step::views_of(samples.fields, request.views)) {
        views.push_back(frozen(network.inputs_from(view)));
      }
      fill_own_rows(features, views, batch, num_samples);
    }
    if (request.seen) request.seen(seen);
  }
  // More ranks than samples leave some without a share; they need the shape all the same.
  if (features.views.empty()) {
    const model::Bundle blank = frozen(blank_inputs(network, task, request.device));
    for (int64_t v = 0; v < step::num_views(request.views); ++v)
      features.views.push_back(no_rows_yet(blank, num_samples));
  }
  exchange(features, num_samples, group);
  return features;
}

step::Samples feature_batch(const Features& features, const spec::Training& training, const run::LoaderState& state,
                            int64_t step, const comm::Group& group, at::Device device) {
  const run::Range range = run::batch_range(features.num_samples(), training.global_batch, state.consumed);
  const run::Range mine = run::rank_range(range, group.rank(), group.size());
  std::vector<int64_t> ids;
  if (features.balanced) {
    ids = features.balanced->samples(state.epoch, mine);
  } else {
    const run::Order order(features.num_samples(), state.seed, state.epoch);
    for (int64_t i = mine.begin; i < mine.end; ++i) ids.push_back(order(i));
  }
  const loader::Batch batch = batch_of(features, ids);
  step::Samples samples{step, state.epoch, range.size(), {}, batch.was_read, features.from};
  for (const auto& values : batch.fields) {
    samples.fields.set(values.field.name, step::host_values(values, batch.size())
                                              .to(device, /*non_blocking=*/false,
                                                  /*copy=*/true));
  }
  const at::Tensor rows = at::tensor(ids, at::kLong);
  const size_t num_views = features.views.size();
  const at::Tensor drawn = num_views > 1 ? drawn_views(num_views, ids, state) : at::Tensor();
  for (size_t k = 0; k < features.views.at(0).size(); ++k) {
    at::Tensor values = features.views[0][k].index_select(0, rows);  // [rows, ...]
    for (size_t v = 1; v < num_views; ++v) {
      const at::Tensor these = drawn.eq(static_cast<int64_t>(v)).nonzero().flatten();
      values.index_copy_(0, these, features.views[v][k].index_select(0, rows.index_select(0, these)));
    }
    samples.features.push_back(values.to(device));
  }
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
    std::vector<model::NamedTensors> outputs;
    for (const model::Bundle& view : features.views) {
      model::Bundle values;
      for (const at::Tensor& value : view) {
        values.push_back(
            value.narrow(0, rows.begin, rows.size()).to(options.device, step::compute_type(options.precision)));
      }
      values = network.run(std::move(values), model::Mode::evaluate, features.from, network.blocks().size());
      outputs.push_back(network.outputs_from(values));
    }
    const auto host =
        options.objective->scored(outputs.size() == 1 ? outputs.front() : options.objective->average(outputs));
    const loader::Batch samples = batch_of(features, ids);
    score->add(step::plain_rows(samples, host));
  }
  step::merge_over_ranks(*score, group);
  return score;
}

}  // namespace lockstep::training
