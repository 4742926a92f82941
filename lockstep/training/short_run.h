// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/comm/group.h"
#include "lockstep/run/heartbeat.h"
#include "lockstep/run/pulse.h"
#include "lockstep/spec/job.h"
#include "lockstep/training/train.h"

namespace lockstep::training {

// For tests of whole runs: a job of 8 steps on made-up samples.
inline spec::Job short_job() {
  spec::Job result;
  result.name = "test";
  result.data.train = "synthetic";
  result.data.validate = "synthetic";
  result.data.samples = 26;
  result.data.image_size = 16;
  result.data.threads = 1;
  result.model.name = "smallcnn";
  result.model.classes = 3;
  result.model.width = 4;
  result.training.global_batch = 8;  // 4 steps an epoch, the last of 2 samples
  result.training.epochs = 2;
  result.training.threads = 1;
  result.training.optimizer.lr = 0.05;
  result.checkpoint.every_epochs = 1;
  return result;
}

// Whether that step is computed, or one behind it. By this a test stops a run in one step and no other: how often it is
// asked is decided by the machine, since those who wait for data ask again and again.
inline bool computes_step(const run::Activity& activity, int64_t step) {
  run::Heartbeat heartbeat;
  activity.write_into(heartbeat);
  return heartbeat.phase == run::Phase::computing && heartbeat.step + 1 >= step;
}

// For TrainOptions::stop, with the activity of the same options.
inline std::function<std::string()> stop_in_step(std::shared_ptr<run::Activity> activity, int64_t step) {
  return [activity = std::move(activity), step] { return std::string(computes_step(*activity, step) ? "test" : ""); };
}

// Stops after that step, or after the first one where the run is further already.
inline TrainResult train_in(const base::Path& folder, const spec::Job& what, int64_t stop_after = -1) {
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder;
  if (stop_after > 0) options.stop = stop_in_step(options.activity, stop_after);
  return train(what, options, *group);
}

}  // namespace lockstep::training
