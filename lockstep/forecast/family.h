// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// One step at any micro-batch from a few traces of it: storages, FLOPs and bytes are affine in the number of samples,
// so two recordings with the same events give every other one. This is what makes a search over batches and GPUs cheap.
// With more members a batch is found between its two neighbours, so a kink (another kernel from some size on) costs one
// more trace and not the idea.
class Family {
 public:
  // Recordings of the same job that differ in micro_batch only, at least two. Bug error when their events do not
  // correspond one to one: then the caller must trace each batch by itself.
  explicit Family(std::vector<Recording> members);
  static bool corresponds(const Recording& a, const Recording& b);
  // From these two alone. REQUIRES: they correspond, and a has the smaller batch.
  static Recording between(const Recording& a, const Recording& b, int64_t micro_batch);

  Recording at(int64_t micro_batch) const;  // equal to the trace at that batch (a test holds it to that)
  const std::vector<Recording>& members() const { return members_; }  // by micro_batch

 private:
  std::vector<Recording> members_;
};

}  // namespace lockstep::forecast
