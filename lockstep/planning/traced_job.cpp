// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/traced_job.h"

namespace lockstep::planning {
namespace {

// A factor that is on has one value: operators take it as a number.
void settle(double& factor, double on) {
  if (factor > 0) factor = on;
}

void settle(spec::Optimizer& optimizer) {
  const spec::Optimizer otherwise;
  optimizer.lr = otherwise.lr;
  optimizer.beta1 = otherwise.beta1;
  optimizer.beta2 = otherwise.beta2;
  optimizer.epsilon = otherwise.epsilon;
  optimizer.trust = otherwise.trust;
  optimizer.nesterov = otherwise.nesterov;
  settle(optimizer.momentum, otherwise.momentum);
  settle(optimizer.weight_decay, otherwise.weight_decay);
}

void settle(spec::Training& training) {
  const spec::Training otherwise;
  training.global_batch = otherwise.global_batch;
  training.micro_batch = otherwise.micro_batch;
  training.precision = otherwise.precision;
  training.recompute = otherwise.recompute;
  training.zero = otherwise.zero;
  training.epochs = otherwise.epochs;
  training.steps = otherwise.steps;
  training.schedule = otherwise.schedule;
  training.early_stop = otherwise.early_stop;
  training.auxiliary_weight = otherwise.auxiliary_weight;
  training.seed = otherwise.seed;
  training.threads = otherwise.threads;
  training.max_nonfinite_steps = otherwise.max_nonfinite_steps;
  training.max_rewinds = otherwise.max_rewinds;
  training.spike_factor = otherwise.spike_factor;
  training.check_sync_every = otherwise.check_sync_every;
  training.replay_every = otherwise.replay_every;
  settle(training.ema_decay, 0.999);
  settle(training.label_smoothing, 0.1);
  settle(training.optimizer);
}

}  // namespace

spec::Job traced_job(const spec::Job& job) {
  spec::Job traced = job;
  traced.name.clear();
  const auto size = traced.data.image_size;
  const auto pixels = traced.data.pixels;
  traced.data = {};
  traced.data.image_size = size;
  traced.data.pixels = pixels;
  traced.model.weights.clear();
  settle(traced.training);
  const auto views = traced.evaluation.views;
  traced.evaluation = {};
  traced.evaluation.views = views;
  traced.checkpoint = {};
  traced.limits = {};
  return traced;
}

}  // namespace lockstep::planning
