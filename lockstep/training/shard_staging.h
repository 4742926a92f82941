// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/training/training_context.h"

namespace lockstep::training {

// Copying the shards of a run to its node (data.stage) while it trains.
class ShardStaging {
 public:
  explicit ShardStaging(TrainingContext& context) : context_(context) {}

  void start();           // says how long it takes; nobody waits for it. User error when there are no shards
  void tell_when_done();  // once, when the copies are there

 private:
  TrainingContext& context_;
  bool told_ = false;
};

}  // namespace lockstep::training
