// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/bench.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/peer.h"
#include "lockstep/run/capture.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/nvml.h"
#include "lockstep/site/processor.h"
#include "lockstep/step/gpu.h"
#include "lockstep/step/memory.h"

namespace lockstep::measure {
namespace {

using base::text;

// The network, with what of its shape is the task's.
std::string peer_model(const spec::Job& job) {
  if (job.task != spec::Task::nowcast) return job.model.name;
  const spec::Nowcast& how = job.nowcast;
  std::string words = text(job.model.name, ":", how.inputs, ",", how.outputs, ",",
                           std::max<int64_t>(job.model.patch, 1), ",", how.input_kernel, ",", how.state_kernel);
  for (const double width : how.widths) words += text(",", width);
  return words;
}

std::unique_ptr<Peer> start_peer(const StepBench& bench, const base::Path& folder) {
  for (const auto& file : base::embedded_files()) {
    if (file.name.ends_with("measure/peer_step.py")) base::write_file(folder / "peer_step.py", file.content);
  }
  const auto& job = bench.job;
  // Our way of waiting (main.cpp) is not the peer's: it runs with its own defaults.
  return std::make_unique<Peer>(std::vector<std::string>{
      "env", "-u", "OMP_WAIT_POLICY", bench.peer, (folder / "peer_step.py").string(), peer_model(job),
      text(job.training.global_batch), to_text(job.data.image_size), text(at::get_num_threads()),
      name_of(job.training.optimizer.name), name_of(job.training.precision), bench.device.is_cuda() ? "cuda" : "cpu",
      bench.compiled ? "compiled" : "eager"});
}

StepTimes::Peaks read_peaks(const std::string& line) {
  const auto words = base::split(line, ' ');
  base::ensure(words.size() == 2, "the peer says what it allocated and reserved");
  return {std::stoll(words[0]), std::stoll(words[1])};
}

}  // namespace

step::Samples made_up_samples(const spec::Job& job, at::Device device, int64_t rank, int64_t ranks) {
  const int64_t batch = job.training.global_batch;
  const int64_t rows = (rank + 1) * batch / ranks - rank * batch / ranks;
  const loader::Batch drawn = loader::draw_batch(job, 0, rows);
  step::Samples samples = step::to_samples(drawn, device);
  for (auto& field : samples.fields) field.tensor = field.tensor.clone();  // the batch's memory ends here
  samples.global_size = batch;
  return samples;
}

double median(std::vector<double> values) {
  base::ensure(!values.empty(), "there is something to take the median of");
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double StepTimes::median_ours() const {
  return median(ours);
}

std::optional<double> StepTimes::median_peer() const {
  return peer.empty() ? std::nullopt : std::optional(median(peer));
}

std::optional<double> StepTimes::ratio() const {
  if (peer.empty()) return std::nullopt;
  std::vector<double> ratios;
  for (size_t i = 0; i < peer.size(); ++i) ratios.push_back(peer[i] / ours[i]);
  return median(ratios);
}

StepTimes bench_step(const StepBench& bench) {
  step::keep_freed_memory();
  at::set_num_threads(static_cast<int>(bench.job.training.threads));
  const auto group = comm::single_group();
  auto network = model::make_network(bench.job, bench.device);
  step::Step step(
      network, *group,
      {.training = bench.job.training, .device = bench.device, .objective = objective::make_objective(bench.job)});
  step::Samples samples = made_up_samples(bench.job, bench.device);
  const auto take = [&](int64_t count) {
    const double start = base::steady_seconds();
    for (int64_t i = 0; i < count; ++i, ++samples.step) step.run(samples, 1e-4);
    return (base::steady_seconds() - start) / static_cast<double>(count);
  };
  // Warm: thread pools, memory, kernels chosen; on a GPU until the step is a graph. Peaks are those of warm steps.
  const auto gpu = bench.device.is_cuda() ? std::optional(step::Gpu(bench.device)) : std::nullopt;
  take(1);
  if (gpu) gpu->reset_peaks();
  take(gpu ? run::kEagerSteps + 2 : 2);
  StepTimes times;
  const base::TemporaryFolder folder;
  std::unique_ptr<Peer> peer;
  if (!bench.peer.empty()) {
    peer = start_peer(bench, folder.path());
    times.peer_greeting = peer->greeting();
  }
  for (int64_t round = 0; round < bench.rounds; ++round) {
    times.ours.push_back(take(bench.steps));
    if (peer) times.peer.push_back(std::stod(peer->ask(text("go ", bench.steps))) / static_cast<double>(bench.steps));
    bench.say(text("round ", round + 1, ": ours ", base::fixed(times.ours.back() * 1000, 1), " ms",
                   peer ? text(", peer ", base::fixed(times.peer.back() * 1000, 1), " ms") : ""));
  }
  if (gpu) times.memory = {gpu->memory().peak.allocated, gpu->memory().peak.reserved};
  if (gpu && peer) times.peer_memory = read_peaks(peer->ask("memory"));
  return times;
}

std::string machine_name(at::Device device) {
  if (!device.is_cuda()) return text(site::read_processor().model, ", ", site::usable_cores(), " cores");
  const auto gpu = site::read_cuda_gpu(std::max<int>(0, device.index()));
  return gpu ? gpu->name : "a GPU that the driver does not name";
}

base::Json result_row(const StepBench& bench, const StepTimes& times, const std::string& command) {
  const auto batch = static_cast<double>(bench.job.training.global_batch);
  base::Json row = base::Json::object();
  row["what"] = "step";
  row["model"] = bench.job.model.name;
  row["batch"] = bench.job.training.global_batch;
  row["image_size"] = to_json(bench.job.data.image_size);
  row["precision"] = name_of(bench.job.training.precision);
  row["optimizer"] = name_of(bench.job.training.optimizer.name);
  row["threads"] = at::get_num_threads();
  row["device"] = bench.device.is_cuda() ? "cuda" : "cpu";
  row["samples_per_second"] = batch / times.median_ours();
  row["milliseconds"] = times.median_ours() * 1000;
  if (const auto peer = times.median_peer()) {
    row["peer"] = text("PyTorch ", times.peer_greeting.substr(times.peer_greeting.find(' ') + 1));
    row["peer_samples_per_second"] = batch / *peer;
    row["ratio"] = *times.ratio();
  }
  if (times.memory.reserved > 0) {
    row["kernels"] = name_of(bench.job.training.kernels);
    row["peak_allocated"] = times.memory.allocated;
    row["peak_reserved"] = times.memory.reserved;
  }
  if (times.peer_memory.reserved > 0) {
    row["peer_peak_allocated"] = times.peer_memory.allocated;
    row["peer_peak_reserved"] = times.peer_memory.reserved;
  }
  row["command"] = command;
  row["commit"] = base::build_commit();
  row["machine"] = machine_name(bench.device);
  return row;
}

}  // namespace lockstep::measure
