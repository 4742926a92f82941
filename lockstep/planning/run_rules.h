// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/forecast/option.h"
#include "lockstep/loader/budget.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/loader_rules.h"
#include "lockstep/loader/store.h"
#include "lockstep/planning/tracer.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::planning {

// What a run of a job would say of itself on a place: the very functions that `train` calls, before there is a run.
class RunRules {
 public:
  // `samples` and `validation_samples`: 0 where they are not known. REQUIRES: model.classes is known.
  RunRules(const spec::Job& job, int64_t samples, int64_t validation_samples, Tracer& tracer);

  // `job`: the same, with other levers perhaps.
  forecast::RunSays says(const spec::Job& job, const forecast::Place& place);

 private:
  // A collection as far as it is here: of shards their index; of others, that there are none.
  struct Side {
    std::unique_ptr<loader::Collection> collection = {};
    std::unique_ptr<loader::Store> store = {};  // of shards
    int64_t samples = 0;
  };
  static Side side_of(const std::string& folder, int64_t samples, const task::Task& task);
  static loader::MemoryNeeds needs_of(const Side& side, const loader::LoaderOptions& options);
  static int64_t bytes_of(const Side& side, const loader::LoaderOptions& options);
  int64_t staged_bytes(const spec::Job& job, const forecast::Place& place) const;
  // Fills in the bytes; throws what the run would.
  void ask(const spec::Job& job, const forecast::Place& place, forecast::RunSays& says);

  Side train_;
  Side validate_;
  std::vector<run::FeatureNeeds> features_;  // one rank's, by phase
  NormCheck check_norms_;
  std::map<std::string, forecast::RunSays> known_;
};

}  // namespace lockstep::planning
