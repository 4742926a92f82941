// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/cell.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/allocator_file.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/operator_watch.h"
#include "lockstep/run/capture.h"
#include "lockstep/site/nvml.h"
#include "lockstep/step/gpu.h"
#include "lockstep/step/memory.h"

namespace lockstep::measure {
namespace {

using base::Json;
using base::text;

constexpr const char* kCellKeys[] = {"model",     "batch",       "image_size", "precision",
                                     "optimizer", "micro_batch", "recompute",  "expandable_segments",
                                     "layout",    "kernels",     "graph"};
constexpr int64_t kRecordedSteps = 3;  // from process start: the allocator is settled by then
constexpr int64_t kMostSteps = 400;

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::floor(share * static_cast<double>(values.size() - 1)))];
}

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

void put_peaks(Json& row, const std::string& prefix, const lockstep_cuda_bytes& peak) {
  row[prefix + "peak_allocated_bytes"] = peak.allocated;
  row[prefix + "peak_active_bytes"] = peak.active;
  row[prefix + "peak_reserved_bytes"] = peak.reserved;
  row[prefix + "peak_requested_bytes"] = peak.requested;
}

// One cell under measurement.
class CellMeasure {
 public:
  CellMeasure(const Cell& cell, const CellRun& how)
      : cell_(cell),
        how_(how),
        batch_(loader::draw_batch(cell.job, 0, cell.job.training.global_batch)),
        group_(comm::single_group()) {
    if (how.device.is_cuda()) {
      used_before_ = used_bytes();
      gpu_ = std::make_unique<step::Gpu>(how.device);
      if (!how.allocator.empty()) gpu_->start_history();
    }
    network_ = std::make_unique<model::Network>(model::make_network(cell.job, how.device));
    step_ = std::make_unique<step::Step>(*network_, *group_,
                                         step::StepOptions{.training = cell.job.training,
                                                           .device = how.device,
                                                           .graph = cell.graph && !how.operators,
                                                           .objective = objective::make_objective(cell.job)});
  }

  void first_steps(Json& row) {
    row["parameters"] = network_->parameter_count();
    row["first_step_seconds"] = take().step;
    if (gpu_) {
      put_peaks(row, "cold_", gpu_->memory().peak);
      gpu_->mark(kPeaksReset);
      gpu_->reset_peaks();
    }
    for (int64_t i = 1; i < kRecordedSteps; ++i) take();
    if (gpu_ && !how_.allocator.empty()) {
      gpu_->stop_history();
      write_allocator_file(how_.allocator, gpu_->take_history(), cell_, gpu_->memory(), kRecordedSteps);
    }
    if (cell_.graph) {
      for (int64_t i = 0; i < run::kEagerSteps; ++i) take();
    }
    for (int64_t i = 0; i < 20 && skipped_; ++i) take();  // amp looks for its loss scale: those steps are shorter
    if (skipped_) how_.say("the loss scale still falls: these steps leave the optimizer out");
  }

  void timed_steps(Json& row) {
    std::vector<double> steps;
    std::vector<double> inputs;
    double sum = 0;
    while (static_cast<int64_t>(steps.size()) < how_.steps || (sum < how_.seconds / 2 && steps.size() < kMostSteps)) {
      const Taken taken = take();
      steps.push_back(taken.step);
      inputs.push_back(taken.input);
      sum += taken.step + taken.input;
    }
    row["seconds"] = median(steps);
    row["seconds_low"] = quantile(steps, 0.1);
    row["seconds_high"] = quantile(steps, 0.9);
    row["steps"] = steps.size();
    row["input_seconds"] = median(inputs);
    row["samples_per_second"] = static_cast<double>(cell_.job.training.global_batch) / median(steps);
  }

  // Steps behind each other without a wait of ours between them, and what they draw.
  void flowing_steps(Json& row, double step_seconds) {
    const auto count = std::clamp<int64_t>(static_cast<int64_t>(how_.seconds / std::max(1e-4, step_seconds)), 3, 2000);
    std::optional<site::PowerMeter> meter;
    if (gpu_) meter.emplace(how_.device.index());
    const double joules = meter ? meter->joules().value_or(0) : 0;
    const double start = base::steady_seconds();
    for (int64_t i = 0; i < count; ++i) run_once();
    if (gpu_) gpu_->synchronize();
    const double seconds = base::steady_seconds() - start;
    row["loop_seconds"] = seconds / static_cast<double>(count);  // with the input's copy
    if (!meter) return;
    if (const auto watts = meter->watts()) row["watts_now"] = *watts;
    const double drawn = meter->joules().value_or(0) - joules;
    if (drawn <= 0) return;
    row["watts"] = drawn / seconds;
    row["joules"] = drawn / static_cast<double>(count);  // a step
  }

  void memory(Json& row) {
    if (!gpu_) {
      row["peak_resident_bytes"] = peak_resident_bytes();
      return;
    }
    const auto memory = gpu_->memory();
    put_peaks(row, "", memory.peak);
    row["allocator_retries"] = memory.retries;
    const auto free = gpu_->free_memory();
    row["device_total_bytes"] = free.total;
    row["device_used_bytes"] = free.total - free.free;
    row["context_bytes"] = free.total - free.free - memory.now.reserved;
    if (used_before_) row["used_before_bytes"] = *used_before_;
    if (const auto used = used_bytes()) row["driver_used_bytes"] = *used;
  }

  Json operators(Json& row) {
    const step::Samples samples = step::to_samples(batch_, how_.device);
    const auto work = watch_operators([&] { run_step(samples); }, {.gpu = gpu_.get(), .repeats = 3});
    row["timer"] = work.timer;
    row["busy_seconds"] = work.busy_seconds;
    row["unsplit_seconds"] = work.unsplit_seconds;
    if (gpu_) {
      row["span_seconds"] = work.span_seconds;
      row["stray_seconds"] = work.stray_seconds;
      row["launches"] = work.launches;
      row["host_seconds"] = work.host_seconds;
      row["waiting_seconds"] = work.waiting_seconds;
    }
    Json rows = Json::array();
    for (const auto& seen : work.operators) {
      if (seen.what.kind == forecast::OperatorClass::view && seen.host_seconds == 0) continue;
      Json one = operator_row(seen);
      for (const char* key : {"model", "batch", "precision"}) one[key] = row.at(key);
      one["layout"] = name_of(cell_.job.model.layout);
      rows.push_back(std::move(one));
    }
    return rows;
  }

 private:
  struct Taken {
    double input = 0;
    double step = 0;
  };

  // As train's session takes a step: the input lives as long as the step.
  Taken take() {
    const double start = base::steady_seconds();
    const step::Samples samples = step::to_samples(batch_, how_.device);
    if (gpu_) gpu_->synchronize();
    const double copied = base::steady_seconds();
    run_step(samples);
    if (gpu_) gpu_->synchronize();
    return {copied - start, base::steady_seconds() - copied};
  }

  void run_once() { run_step(step::to_samples(batch_, how_.device)); }

  void run_step(const step::Samples& samples) {
    const auto result = step_->run(samples, 1e-4);
    skipped_ = result.skipped;
    ++batch_.step;
  }

  std::optional<uint64_t> used_bytes() const {
    const auto gpu = site::read_cuda_gpu(std::max<int>(0, how_.device.index()));
    return gpu ? std::optional(gpu->used_bytes) : std::nullopt;
  }

  const Cell& cell_;
  const CellRun& how_;
  loader::Batch batch_;
  std::unique_ptr<comm::Group> group_;
  std::optional<uint64_t> used_before_;
  std::unique_ptr<step::Gpu> gpu_;
  std::unique_ptr<model::Network> network_;
  std::unique_ptr<step::Step> step_;
  bool skipped_ = false;
};

}  // namespace

std::string Cell::name() const {
  const auto& training = job.training;
  std::string all = text(job.model.name, "-b", training.global_batch);
  if (training.micro_batch > 0) all += text("-m", training.micro_batch);
  if (job.data.image_size != 224) all += text("-", to_text(job.data.image_size), "px");
  all += text("-", name_of(training.precision), "-", name_of(training.optimizer.name));
  if (!training.recompute.empty()) all += "-recompute";
  if (job.model.layout != spec::Layout::channels_last) all += text("-", name_of(job.model.layout));
  if (training.kernels == spec::Kernels::fused) all += graph ? "-graph" : "-fused";
  return all + (expandable_segments ? "-expandable" : "");
}

Cell parse_cell(const Json& row) {
  for (const auto& member : row.members()) {
    const auto known = std::find(std::begin(kCellKeys), std::end(kCellKeys), member.key) != std::end(kCellKeys);
    if (!known) {
      throw base::Error(base::Blame::user, text(row.where(), ": a cell has no key '", member.key, "'"),
                        base::did_you_mean(member.key, {std::begin(kCellKeys), std::end(kCellKeys)}));
    }
  }
  Json document = Json::object();
  document["name"] = "cell";
  document["data"]["train"] = "synthetic";
  document["data"]["samples"] = 1000;
  document["data"]["image_size"] = row.int_or("image_size", 224);
  document["model"]["name"] = row.at("model");
  document["model"]["classes"] = 1000;
  document["training"]["steps"] = 1;
  document["training"]["global_batch"] = row.at("batch");
  document["training"]["precision"] = row.string_or("precision", "fp32");
  document["training"]["optimizer"]["name"] = row.string_or("optimizer", "sgd");
  document["training"]["kernels"] = row.string_or("kernels", "reference");
  if (const Json* micro = row.find("micro_batch")) document["training"]["micro_batch"] = *micro;
  if (const Json* recompute = row.find("recompute")) document["training"]["recompute"] = *recompute;
  if (const Json* layout = row.find("layout")) document["model"]["layout"] = *layout;
  Cell cell;
  cell.job = spec::parse_job(document);
  const Json* expandable = row.find("expandable_segments");
  cell.expandable_segments = expandable && expandable->as_bool();
  const Json* graph = row.find("graph");
  cell.graph = graph && graph->as_bool();
  return cell;
}

std::vector<Json> read_cells(const std::string& file) {
  if (!file.empty()) return base::read_json(file).items();
  for (const auto& embedded : base::embedded_files()) {
    if (embedded.name.ends_with("measure/cells.json")) return base::parse_json(embedded.content, "cells.json").items();
  }
  throw base::Error(base::Blame::bug, "cells.json is not built in");
}

Json cell_head(const Json& cell, const std::string& device) {
  Json row = Json::object();
  row["what"] = "cell";
  row["model"] = cell.string_or("model", "?");
  row["batch"] = cell.int_or("batch", 0);
  row["image_size"] = cell.int_or("image_size", 224);
  row["precision"] = cell.string_or("precision", "fp32");
  row["optimizer"] = cell.string_or("optimizer", "sgd");
  for (const char* key : {"micro_batch", "recompute", "expandable_segments", "layout", "kernels", "graph"}) {
    if (const Json* value = cell.find(key)) row[key] = *value;
  }
  row["device"] = device;
  return row;
}

CellResult run_cell(const Cell& cell, const CellRun& how) {
  step::keep_freed_memory();
  at::set_num_threads(static_cast<int>(how.threads));
  CellResult result;
  Json& row = result.row;
  row["model"] = cell.job.model.name;
  row["batch"] = cell.job.training.global_batch;
  row["precision"] = name_of(cell.job.training.precision);
  row["threads"] = how.threads;
  CellMeasure measured(cell, how);
  how.say("made");
  measured.first_steps(row);
  how.say(text("first step ", base::fixed(row.at("first_step_seconds").as_double(), 2), " s"));
  measured.timed_steps(row);
  measured.memory(row);
  measured.flowing_steps(row, row.at("seconds").as_double());
  how.say(text(base::fixed(row.at("seconds").as_double() * 1000, 1), " ms a step"));
  if (!how.operators) return result;
  try {
    result.operators = measured.operators(row);
  } catch (const std::exception& error) {
    row["operators_error"] = std::string(error.what());
  }
  return result;
}

}  // namespace lockstep::measure
