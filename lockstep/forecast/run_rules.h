// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/forecast/trial.h"
#include "lockstep/loader/budget.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/loader_rules.h"
#include "lockstep/loader/store.h"
#include "lockstep/run/feature_needs.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::forecast {

// What the run itself says of one machine option and one set of levers, before it is there.
struct RunRequirements {
  std::optional<base::Error> refusal = {};  // it would not start
  int64_t data_memory = 0;                  // that its loaders would do with, where data.memory is too small for them
  int64_t loader_bytes = 0;                 // main memory of one rank's loaders
  int64_t pinned_bytes = 0;                 // likewise, page-locked
  int64_t feature_bytes = 0;                // likewise, of cached features
  int64_t staged_bytes = 0;                 // main memory of a node, of copied shards
  int64_t busiest_rows = 0;                 // samples of an evaluation on the rank that has the most
};

// Throws what the run would. The job is the one that it was made for, with other levers perhaps.
using NormCheck = std::function<void(const spec::Job& job, int64_t samples, int64_t ranks)>;

// What only the job's network can say.
struct NetworkSays {
  std::vector<run::FeatureNeeds> features = {};  // that one rank caches, by phase
  NormCheck check_norms = {};                    // whether some batch norm would see one value a channel
};

// The rules of a run of this job, asked before there is a run: the very functions that `train` calls.
class RunRules {
 public:
  // `samples` and `validation_samples`: 0 where they are not known. REQUIRES: model.classes is known.
  RunRules(spec::Job job, int64_t samples, int64_t validation_samples, NetworkSays network);

  RunRequirements requirements(const MachineOption& machine_option, const Levers& levers);
  // Samples of an evaluation pass; 0: the job does not evaluate. A collection that is not here is taken to be large.
  int64_t evaluation_rows(const MachineOption& machine_option, const Levers& levers) const;

 private:
  // A collection as far as it is here: of shards their index; of others, that there are none.
  struct Side {
    std::unique_ptr<loader::Collection> collection = {};
    std::unique_ptr<loader::Store> store = {};  // of shards
    int64_t samples = 0;
    int64_t decoded = 0;  // bytes of an image in hand, of files of their own; 0: nobody knows
  };
  static Side side_of(const std::string& folder, int64_t samples, const task::Task& task);
  static loader::MemoryNeeds needs_of(const Side& side, const loader::LoaderOptions& options);
  static int64_t bytes_of(const Side& side, const loader::LoaderOptions& options);
  int64_t staged_bytes(const MachineOption& machine_option) const;
  int64_t least_data_memory(const spec::Job& job, const MachineOption& machine_option) const;
  // Fills in the bytes; throws what the run would.
  void fill(const spec::Job& job, const MachineOption& machine_option, RunRequirements& requirements);

  spec::Job job_;
  Side train_;
  Side validate_;
  NetworkSays network_;
  std::map<std::string, RunRequirements> known_;
};

}  // namespace lockstep::forecast
