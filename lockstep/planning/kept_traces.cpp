// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/kept_traces.h"

#include <algorithm>

namespace lockstep::planning {

forecast::Recording KeptTraces::keep(std::vector<Kept>& all, Record record, const spec::Job& job,
                                     const SimulatedRank& rank) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Kept& kept) { return kept.rank == rank && kept.job == job; });
  if (found != all.end()) return found->recording;
  return all.emplace_back(Kept{job, rank, (tracer_->*record)(job, rank)}).recording;
}

forecast::Recording KeptTraces::step(const spec::Job& job, const SimulatedRank& rank) {
  return keep(steps_, &Tracer::step, job, rank);
}

forecast::Recording KeptTraces::evaluation(const spec::Job& job, const SimulatedRank& rank) {
  return keep(evaluations_, &Tracer::evaluation, job, rank);
}

std::vector<run::FeatureNeeds> KeptTraces::features(const spec::Job& job, int64_t samples) {
  return tracer_->features(job, samples);
}

NormCheck KeptTraces::norm_check() {
  return tracer_->norm_check();
}

}  // namespace lockstep::planning
