// SPDX-License-Identifier: Apache-2.0
// optimizers_torch_probe NAME LR MOMENTUM NESTEROV WEIGHT_DECAY DECAY_ALL STEPS: prints the parameters after STEPS
// steps whose gradients are a fixed function of (step, index); optimizers.py does the same with torch.optim.
// optimizers_torch_probe schedule JOB_SCHEDULE_JSON LR STEPS STEPS_PER_EPOCH: prints the rate of every step.
#include <ATen/ops/arange.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/run/schedule.h"
#include "lockstep/step/optimizer.h"

namespace {

using namespace lockstep;

at::Tensor wave(at::IntArrayRef shape, double phase) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kFloat).mul_(0.7).add_(phase).sin_().view(shape);
}

int print_schedule(char** words) {
  base::Json document = base::Json::object();
  document["name"] = "probe";
  document["data"]["train"] = "synthetic";
  document["data"]["samples"] = 10;
  document["model"]["name"] = "mlp";
  document["model"]["classes"] = 2;
  document["training"]["epochs"] = 1000;
  document["training"]["schedule"] = base::parse_json(words[2], "schedule");
  const auto schedule = spec::parse_job(document).training.schedule;
  const run::StepInterval interval{
      .lr = std::stod(words[3]), .num_steps = std::stoll(words[4]), .steps_per_epoch = std::stoll(words[5])};
  for (int64_t i = 0; i < interval.num_steps; ++i) {
    std::printf("%.17g\n", run::learning_rate(schedule, interval, i));
  }
  return 0;
}

spec::OptimizerName named(const std::string& name) {
  for (const auto one : {spec::OptimizerName::sgd, spec::OptimizerName::adamw, spec::OptimizerName::lars,
                         spec::OptimizerName::lamb, spec::OptimizerName::rmsprop}) {
    if (name_of(one) == name) return one;
  }
  throw std::invalid_argument(name);
}

int print_parameters(char** words) {
  spec::Optimizer options;
  const std::string name = words[1];
  options.epsilon_in_root = name == "rmsprop_in_root";
  options.name = options.epsilon_in_root ? spec::OptimizerName::rmsprop : named(name);
  if (options.name == spec::OptimizerName::rmsprop) {
    options.beta2 = 0.9;
    options.epsilon = 1e-2;
  }
  options.momentum = std::stod(words[3]);
  options.nesterov = std::string(words[4]) == "1";
  options.weight_decay = std::stod(words[5]);
  options.decay_norm_and_bias = std::string(words[6]) == "1";
  step::Optimizer optimizer(
      options, {{"weight", wave({7, 11}, 0.3).requires_grad_(true)}, {"bias", wave({11}, 0.9).requires_grad_(true)}});
  for (int64_t i = 0; i < std::stoll(words[7]); ++i) {
    for (auto parameter : optimizer.parameters()) {
      parameter.tensor.mutable_grad() = wave(parameter.tensor.sizes(), static_cast<double>(i));
    }
    optimizer.step(std::stod(words[2]));
  }
  for (const auto& parameter : optimizer.parameters()) {
    const at::Tensor flat = parameter.tensor.detach().flatten();
    for (int64_t i = 0; i < flat.numel(); ++i) std::printf("%.9g\n", flat[i].item<double>());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::string(argv[1]) == "schedule") return print_schedule(argv);
  if (argc == 8) return print_parameters(argv);
  std::fprintf(stderr, "see the first lines of the source\n");
  return 2;
}
