// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/loader/loader.h"
#include "lockstep/model/network.h"
#include "lockstep/run/record_file.h"
#include "lockstep/step/partitioning.h"

namespace lockstep::training {

// One rank's own account of a run, in RUN/history/rank-<rank>.jsonl (docs/formats/journal.md): which samples each of
// its steps took and what the weights were afterwards. With those of the other ranks a checker can prove that no
// sample was lost or repeated, whatever was killed in between. Costs a checksum of the weights each step.
class SampleHistory {
 public:
  SampleHistory(const base::Path& run, int64_t rank, int64_t num_ranks);

  void begin(const std::string& session, int64_t step);  // goes on after that step; one name on all ranks
  void rewound(int64_t step, int64_t data_shift);        // back at it
  // Writes down step number `step`, whose mean loss over all ranks is `loss`. With a partitioning of level 3 (null:
  // none) the checksum is of this rank's partitions.
  void step(int64_t step, const loader::Batch& batch, double loss, const model::Network& network,
            const step::Partitioning* partitioning);

 private:
  int64_t num_ranks_;
  run::RecordFile file_;
};

}  // namespace lockstep::training
