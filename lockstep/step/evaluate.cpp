// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/evaluate.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include "lockstep/base/json.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/step.h"

namespace lockstep::step {
namespace {

// rows: [samples, classes]
void add(task::Metrics& metrics, const at::Tensor& rows, const loader::Batch& batch) {
  const int64_t classes = rows.size(1);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (batch.targets[k] == loader::kNoTarget) continue;
    metrics.add({rows.const_data_ptr<float>() + i * classes, static_cast<size_t>(classes)}, {&batch.targets[k], 1},
                {&batch.sample_ids[k], 1});
  }
}

}  // namespace

at::Tensor evaluate_pass(const model::Network& network, const at::Tensor& values, spec::Precision precision) {
  const at::Tensor logits = network.forward(values.to(compute_type(precision)), model::Mode::evaluate).logits;
  return logits.to(at::kCPU, at::kFloat).contiguous();
}

task::Metrics evaluate(const model::Network& network, loader::Loader& loader, comm::Group& group,
                       const EvaluateOptions& options) {
  const c10::AutoGradMode no_gradients(false);
  const PassPrecision precision(network, options.precision, options.device);
  task::Metrics mine(options.classes, options.worst);
  int64_t seen = 0;
  for (loader::Batch batch = loader.next(); batch.global_size > 0; batch = loader.next()) {
    seen += batch.size();
    if (batch.size() > 0) {
      const Samples samples = to_samples(batch, options.device);
      add(mine, evaluate_pass(network, samples.values, options.precision), batch);
    }
    if (options.seen) options.seen(seen);
  }
  return over_ranks(mine, group);
}

task::Metrics over_ranks(const task::Metrics& mine, comm::Group& group) {
  if (group.size() == 1) return mine;
  std::vector<double> packed = mine.pack();
  const auto all = group.all_gather(at::from_blob(packed.data(), {static_cast<int64_t>(packed.size())}, at::kDouble));
  const auto unpack = [](const at::Tensor& one) {
    return task::Metrics::unpack({one.const_data_ptr<double>(), static_cast<size_t>(one.numel())});
  };
  task::Metrics sum = unpack(all[0]);
  for (size_t rank = 1; rank < all.size(); ++rank) sum.merge(unpack(all[rank]));
  return sum;
}

std::vector<loader::BadSample> over_ranks(const std::vector<loader::BadSample>& mine, comm::Group& group) {
  base::Json rows = base::Json::array();
  for (const auto& bad : mine) rows.push_back(base::Json::array({bad.id, bad.path, bad.reason}));
  std::vector<loader::BadSample> all;
  for (const auto& words : comm::gather_texts(group, rows.dump(-1))) {
    const base::Json theirs = base::parse_json(words, "unreadable samples of a rank", {.max_bytes = size_t{1} << 30});
    for (const auto& row : theirs.items()) {
      all.push_back({row.items()[0].as_int(), row.items()[1].as_string(), row.items()[2].as_string()});
    }
  }
  return all;
}

}  // namespace lockstep::step
