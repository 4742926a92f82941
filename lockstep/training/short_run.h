// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/file.h"
#include "lockstep/comm/group.h"
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

// Asked for the `stop_after`th time, it stops.
inline TrainResult train_in(const base::Path& folder, const spec::Job& what, int64_t stop_after = -1) {
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder;
  int64_t asked = 0;
  options.stop = [&] { return ++asked == stop_after ? std::string("test") : std::string(); };
  return train(what, options, *group);
}

}  // namespace lockstep::training
