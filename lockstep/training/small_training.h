// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/run/journal.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/step.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// For tests of a session's parts: a job of a few steps on made-up samples, a folder to run it in, and what was said.
struct SmallTraining {
  SmallTraining() {
    job.name = "small";
    job.data.train = job.data.validate = "synthetic";
    job.data.samples = 24;
    job.data.image_size = 8;
    job.data.threads = job.training.threads = 1;
    job.model.name = "mlp";
    job.model.classes = 3;
    job.model.width = 4;
    job.training.global_batch = 8;  // 3 steps an epoch
    job.training.epochs = 4;
    job.training.optimizer.lr = 0.1;
    job.checkpoint.every_epochs = 1000;  // nothing by itself
    options.run = folder.path() / "run";
    options.logger.say = [this](std::string_view line) { said.emplace_back(line); };
  }
  SmallTraining(const SmallTraining&) = delete;
  SmallTraining& operator=(const SmallTraining&) = delete;

  std::vector<base::Json> events(std::string_view name) const {
    return run::read_journal(options.run / "journal.jsonl").named(name);
  }
  static step::Step step_of(TrainingContext& context) {
    return {context.network, context.group, {.training = context.job.training, .ema = context.ema.get()}};
  }

  const base::TemporaryFolder folder;
  spec::Job job;
  TrainOptions options;
  std::vector<std::string> said;
};

}  // namespace lockstep::training
