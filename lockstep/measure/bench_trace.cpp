// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/bench_trace.h"

#include <map>

#include "lockstep/trace/trace.h"

namespace lockstep::measure {

forecast::Recording trace_published(const Published& row) {
  static const std::map<std::string, std::string> precisions = {
      {"fp32", "fp32"}, {"tf32", "tf32"}, {"amp16", "amp"}, {"bf16", "bf16"}, {"fp16_pure", "bf16"}};
  base::Json cell = base::Json::object();
  cell["model"] = row.zoo;
  cell["batch"] = row.batch;
  cell["image_size"] = row.image_size;
  cell["precision"] = precisions.at(row.precision);
  cell["layout"] = name_of(row.layout);
  spec::Job job = parse_cell(cell).job;
  trace::Simulation simulation;
  simulation.ranks = row.gpus > 1 ? 2 : 1;
  simulation.rows = row.batch;
  simulation.steps = 2;
  job.training.global_batch = row.batch * simulation.ranks;
  return trace::trace_step(job, simulation);
}

forecast::Recording trace_cell(const Cell& cell, const catalogue::Gpu& gpu) {
  return trace::trace_step(
      cell.job,
      {.attention = forecast::choose_attention(&gpu, name_of(cell.job.training.precision)), .graph = cell.graph});
}

}  // namespace lockstep::measure
