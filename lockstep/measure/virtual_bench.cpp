// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/virtual_bench.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/run/order.h"
#include "lockstep/step/memory.h"
#include "lockstep/step/step.h"

namespace lockstep::measure {
namespace {

using base::text;

// One way of summing, with a network of its own.
class Way {
 public:
  Way(const spec::Job& job, int64_t virtual_ranks, comm::Group& group)
      : network_(model::make_network(job)),
        step_(network_, group,
              {.training = with(job.training, virtual_ranks), .objective = objective::make_objective(job)}),
        samples_(share(job, virtual_ranks, group)) {}

  double seconds_a_step(int64_t count) {
    const double start = base::steady_seconds();
    for (int64_t i = 0; i < count; ++i, ++samples_.step) step_.run(samples_, 1e-4);
    return (base::steady_seconds() - start) / static_cast<double>(count);
  }

 private:
  static spec::Training with(spec::Training training, int64_t virtual_ranks) {
    training.virtual_ranks = virtual_ranks;
    return training;
  }
  static step::Samples share(const spec::Job& job, int64_t virtual_ranks, const comm::Group& group) {
    const int64_t batch = job.training.global_batch;
    const int64_t rows = run::rank_range({0, batch}, group.rank(), group.size(), virtual_ranks).size();
    const loader::Batch drawn = loader::draw_batch(job, 0, rows);
    step::Samples samples = step::to_samples(drawn, at::kCPU);
    for (auto& field : samples.fields) field.tensor = field.tensor.clone();  // the batch's memory ends here
    samples.global_size = batch;
    return samples;
  }

  model::Network network_;
  step::Step step_;
  step::Samples samples_;
};

}  // namespace

double VirtualTimes::ratio() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < plain.size(); ++i) ratios.push_back(plain[i] / sliced[i]);
  return median(ratios);
}

VirtualTimes bench_virtual(const VirtualBench& bench, comm::Group& group) {
  step::keep_freed_memory();
  at::set_num_threads(static_cast<int>(bench.job.training.threads));
  Way plain(bench.job, 0, group);
  Way sliced(bench.job, bench.job.training.virtual_ranks, group);
  plain.seconds_a_step(2);  // warm: thread pools, memory, kernels chosen
  sliced.seconds_a_step(2);
  VirtualTimes times;
  for (int64_t round = 0; round < bench.rounds; ++round) {
    group.barrier();
    times.plain.push_back(plain.seconds_a_step(bench.steps));
    group.barrier();
    times.sliced.push_back(sliced.seconds_a_step(bench.steps));
    bench.say(text("round ", round + 1, ": plain ", base::fixed(times.plain.back() * 1000, 1), " ms, virtual ranks ",
                   base::fixed(times.sliced.back() * 1000, 1), " ms"));
  }
  return times;
}

base::Json virtual_row(const VirtualBench& bench, const VirtualTimes& times, int64_t ranks,
                       const std::string& command) {
  const auto& job = bench.job;
  const auto batch = static_cast<double>(job.training.global_batch);
  base::Json row = base::Json::object();
  row["what"] = "virtual_ranks";
  row["model"] = job.model.name;
  row["batch"] = job.training.global_batch;
  row["image_size"] = to_json(job.data.image_size);
  row["precision"] = name_of(job.training.precision);
  row["optimizer"] = name_of(job.training.optimizer.name);
  row["ranks"] = ranks;
  row["threads"] = job.training.threads;
  row["virtual_ranks"] = job.training.virtual_ranks;
  row["threads_per_slice"] = job.training.threads_per_slice;
  row["samples_per_second"] = batch / median(times.sliced);
  row["peer"] = "the same step without virtual ranks";
  row["peer_samples_per_second"] = batch / median(times.plain);
  row["ratio"] = times.ratio();
  row["command"] = command;
  row["commit"] = base::build_commit();
  row["machine"] = machine_name(at::kCPU);
  return row;
}

}  // namespace lockstep::measure
