// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/planning/tracer.h"

namespace lockstep::verbs::plan {

// Builds the job's network on a simulated GPU and runs the very step of training there. The process must not have
// opened real CUDA and never may afterwards.
class SimulatedTracer final : public planning::Tracer {
 public:
  forecast::Recording step(const spec::Job& job, const planning::SimulatedRank& rank) override;
  forecast::Recording evaluation(const spec::Job& job, const planning::SimulatedRank& rank) override;
  std::vector<run::FeatureNeeds> features(const spec::Job& job, int64_t samples) override;
  planning::NormCheck norm_check() override;
};

}  // namespace lockstep::verbs::plan
