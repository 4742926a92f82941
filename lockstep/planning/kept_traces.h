// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/planning/tracer.h"

namespace lockstep::planning {

// Keeps what another tracer recorded: plans of one job with other settings ask for many of the same steps, and a step
// of a large network takes a second. For as long as several plans are made, since it only grows.
class KeptTraces final : public Tracer {
 public:
  explicit KeptTraces(Tracer* tracer) : tracer_(tracer) {}

  forecast::Recording step(const spec::Job& job, const SimulatedRank& rank) override;
  forecast::Recording evaluation(const spec::Job& job, const SimulatedRank& rank) override;
  std::vector<run::FeatureNeeds> features(const spec::Job& job, int64_t samples) override;
  NormCheck norm_check() override;

 private:
  struct Kept {
    spec::Job job;
    SimulatedRank rank;
    forecast::Recording recording;
  };
  using Record = forecast::Recording (Tracer::*)(const spec::Job&, const SimulatedRank&);
  forecast::Recording keep(std::vector<Kept>& all, Record record, const spec::Job& job, const SimulatedRank& rank);

  Tracer* tracer_;
  std::vector<Kept> steps_;
  std::vector<Kept> evaluations_;
};

}  // namespace lockstep::planning
