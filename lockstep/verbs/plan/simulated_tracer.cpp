// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/plan/simulated_tracer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "lockstep/step/phase_norms.h"
#include "lockstep/step/virtual_check.h"
#include "lockstep/trace/simulated_device.h"
#include "lockstep/trace/trace.h"
#include "lockstep/training/features.h"

namespace lockstep::verbs::plan {
namespace {

trace::Simulation simulation_of(const planning::SimulatedRank& rank) {
  trace::Simulation simulation;
  if (rank.attention) simulation.attention = *rank.attention;
  simulation.ranks = rank.ranks;
  simulation.rows = rank.rows;
  simulation.evaluation_rows = rank.evaluation_rows;
  simulation.phase = rank.phase;
  simulation.fills = rank.fills;
  simulation.graph = rank.graph;
  return simulation;
}

// A network with values is made only where a pass may have one sample: the variance of its norms is asked for.
class Norms {
 public:
  void check(const spec::Job& job, int64_t samples, int64_t ranks) {
    if (one_is_enough_ || !step::has_passes_of_one(job.training, samples, ranks)) return;
    // Real work before the first simulation would let torch look for a real GPU.
    const trace::SimulatedDevice simulated(std::make_shared<trace::Recorder>());
    const auto made = [&](at::Device device, model::Values values) { return model::make_network(job, device, values); };
    if (!has_norms_) has_norms_ = !made(trace::SimulatedDevice::device(), model::Values::none).buffers().empty();
    if (!*has_norms_) return;
    if (!network_) network_ = std::make_unique<model::Network>(made(at::kCPU, model::Values::fresh));
    step::check_norms_of_phases(job, *network_, at::kCPU, samples, ranks);
    one_is_enough_ = true;  // for every norm of every phase, whatever the share and the ranks
  }

 private:
  std::optional<bool> has_norms_;            // once it is asked for
  std::unique_ptr<model::Network> network_;  // likewise, with values
  bool one_is_enough_ = false;               // a sample, to all of them
};

}  // namespace

forecast::Recording SimulatedTracer::step(const spec::Job& job, const planning::SimulatedRank& rank) {
  return trace::trace_step(job, simulation_of(rank));
}

forecast::Recording SimulatedTracer::evaluation(const spec::Job& job, const planning::SimulatedRank& rank) {
  return trace::trace_evaluation(job, simulation_of(rank));
}

std::vector<run::FeatureNeeds> SimulatedTracer::features(const spec::Job& job, int64_t samples) {
  const auto& phases = job.training.phases;
  if (std::none_of(phases.begin(), phases.end(), [](const auto& phase) { return phase.cache_features; })) return {};
  const trace::SimulatedDevice device(std::make_shared<trace::Recorder>());
  const model::Network network = model::make_network(job, trace::SimulatedDevice::device(), model::Values::none);
  return training::feature_needs(job, network, trace::SimulatedDevice::device(), samples);
}

planning::NormCheck SimulatedTracer::norm_check() {
  return [norms = std::make_shared<Norms>()](const spec::Job& job, int64_t samples, int64_t ranks) {
    norms->check(job, samples, ranks);
  };
}

}  // namespace lockstep::verbs::plan
