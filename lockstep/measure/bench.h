// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/step.h"

namespace lockstep::measure {

struct StepBench {
  spec::Job job;          // model, image size, batch, optimizer, precision, threads
  int64_t steps = 4;      // of one round
  int64_t rounds = 5;     // ours and the peer's alternate, so that a busy machine slows both
  std::string peer = {};  // a Python with torch, torchvision and timm; empty: ours alone
  bool compiled = false;  // the peer with torch.compile
  at::Device device = at::kCPU;
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

struct StepTimes {
  std::vector<double> ours;   // seconds a step, one for each round
  std::vector<double> peer;   // likewise
  std::string peer_greeting;  // "2.11.0+cpu contiguous"
  struct Peaks {              // of a GPU's memory, bytes; 0: not asked
    int64_t allocated = 0, reserved = 0;
  };
  Peaks memory, peer_memory;

  double median_ours() const;
  std::optional<double> median_peer() const;
  std::optional<double> ratio() const;  // median of the rounds' ratios; above 1: we are faster
};

// Times the real step on one rank with made-up data that stays in memory.
StepTimes bench_step(const StepBench& bench);

// One rank's share of a batch that stays in memory, as the loader would give it.
step::Samples made_up_samples(const spec::Job& job, at::Device device, int64_t rank = 0, int64_t ranks = 1);

double median(std::vector<double> values);

// What a figure was taken on: the GPU, or the processor with its cores.
std::string machine_name(at::Device device);

// A row of results/*.json.
base::Json result_row(const StepBench& bench, const StepTimes& times, const std::string& command);

}  // namespace lockstep::measure
