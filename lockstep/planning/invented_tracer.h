// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/invented_step.h"
#include "lockstep/planning/tracer.h"

namespace lockstep::planning {

// For tests: every job has the invented step, and no network to ask.
class InventedTracer final : public Tracer {
 public:
  forecast::Recording step(const spec::Job& job, const SimulatedRank& rank) override {
    const int64_t micro = job.training.micro_batch > 0 ? job.training.micro_batch : rank.rows;
    return forecast::invented_step({.precision = name_of(job.training.precision),
                                    .recompute = job.training.recompute,
                                    .reduced = rank.ranks > 1,
                                    .micro_batch = micro,
                                    .passes = rank.rows / micro});
  }
  forecast::Recording evaluation(const spec::Job& job, const SimulatedRank& rank) override { return step(job, rank); }
  std::vector<run::FeatureNeeds> features(const spec::Job&, int64_t) override { return {}; }
  NormCheck norm_check() override {
    return [](const spec::Job&, int64_t, int64_t) {};
  }
};

}  // namespace lockstep::planning
