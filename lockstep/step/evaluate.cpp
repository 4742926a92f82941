// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/evaluate.h"

#include <c10/core/GradMode.h>

#include "lockstep/base/json.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/step.h"
#include "lockstep/step/views.h"

namespace lockstep::step {

model::NamedTensors evaluate_pass(const model::Network& network, const model::NamedTensors& fields,
                                  const objective::Objective& objective, const PassOptions& options) {
  std::vector<model::NamedTensors> outputs;
  for (const auto& view : views_of(fields, options.views)) {
    model::Bundle values = network.cast(network.inputs_from(view), compute_type(options.precision));
    const size_t end = network.blocks().size();
    size_t from = 0;
    if (options.features && outputs.empty()) {
      from = end - 1;
      values = network.run(std::move(values), model::Mode::evaluate, 0, from);
      const at::Tensor& seen = values.front();  // [rows, width], or maps: [rows, channels, height, width]
      *options.features = seen.dim() == 4 ? seen.mean({2, 3}) : seen.flatten(1);
    }
    const bool is_frozen = options.frozen && !options.features;
    outputs.push_back(network.outputs_from(
        is_frozen ? options.frozen->run(values) : network.run(std::move(values), model::Mode::evaluate, from, end)));
  }
  return outputs.size() == 1 ? std::move(outputs.front()) : objective.average(outputs);
}

task::Rows plain_rows(const loader::Batch& batch, const objective::HostRows& host) {
  task::Rows rows{batch.sample_ids, batch.fields, {}, batch.annotations};
  for (const auto& [name, tensor] : host) {
    rows.outputs.push_back({name,
                            tensor.numel() / std::max<int64_t>(1, tensor.size(0)),
                            {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())}});
  }
  return rows;
}

std::unique_ptr<task::Score> evaluate(const model::Network& network, loader::Loader& loader, comm::Group& group,
                                      const EvaluateOptions& options) {
  const c10::AutoGradMode no_gradients(false);
  const PassPrecision precision(network, options.precision, options.device);
  auto score = options.task->score(options.worst);
  int64_t seen = 0;
  for (loader::Batch batch = loader.next(); batch.global_size > 0; batch = loader.next()) {
    seen += batch.size();
    if (batch.size() > 0) {
      const Samples samples = to_samples(batch, options.device);
      at::Tensor features;
      auto host = options.objective->scored(
          evaluate_pass(network, samples.fields, *options.objective,
                        {options.precision, options.views, options.features ? &features : nullptr}));
      if (options.features) host.push_back({"features", objective::host_rows(features)});
      const task::Rows rows = plain_rows(batch, host);
      score->add(rows);
      if (options.rows) options.rows(rows);
    }
    if (options.seen) options.seen(seen);
  }
  merge_over_ranks(*score, group);
  return score;
}

void merge_over_ranks(task::Score& score, comm::Group& group) {
  if (group.size() == 1) return;
  const auto all = comm::gather_texts(group, score.pack());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<int64_t>(rank) != group.rank()) score.merge(all[rank]);
  }
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
