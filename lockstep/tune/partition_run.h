// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/tune/partition.h"
#include "lockstep/tune/space.h"

namespace lockstep::tune {

struct PartitionOptions {
  spec::Study study;
  base::Path folder;                 // points.jsonl is in it: every point evaluated so far; held meanwhile
  std::vector<std::string> program;  // with {name}s: run for each point; without: stays alive, a line in, a line out
  int64_t workers = 1;               // processes at once
  std::function<std::string()> stop = [] { return std::string(); };
  std::function<void(const std::string&)> show = [](const std::string&) {};
};

struct PartitionResult {
  std::optional<Partitioned> partitioned;  // none: it was stopped
  std::string stopped = {};
  int64_t evaluated = 0;  // in this session; the others were remembered
  double seconds = 0;
  std::vector<std::string> troubles = {};  // of programs that gave no label, a few
};

// Evaluates on `workers` processes until it is done or told to stop; goes on with what is in the folder. The result
// does not depend on the number of processes, nor on interruptions. User error when the program gives no label for most
// of the first points, when the folder holds points of another space, program or seed, or another process works on it.
PartitionResult run_partition(const PartitionOptions& options);

// What one evaluation takes: the program is run at so many points, one after the other.
struct ProgramCost {
  double seconds = 0;  // mean
  int64_t labels = 0;  // different ones
};
ProgramCost measure_program(const PartitionOptions& options, int64_t count);

}  // namespace lockstep::tune
