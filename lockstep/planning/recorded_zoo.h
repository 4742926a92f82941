// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/forecast/attention.h"
#include "lockstep/planning/tracer.h"

namespace lockstep::planning {

// What of levers, GPU and ranks decides a recording, whatever the batch.
struct ZooKey {
  enum class Pass { step, evaluation };

  Pass pass = Pass::step;
  std::string precision = {};
  std::vector<std::string> recompute = {};            // sorted: a step does not depend on the order of their names
  std::optional<forecast::Attention> attention = {};  // none: the network has none
  int64_t ranks = 1;                                  // 2: more than one
  int64_t passes = 1;                                 // of a step: 1, or 2 for more than one

  bool operator==(const ZooKey&) const = default;
};

// One step at every batch: recorded at two of them, with an evaluation of as many samples between two steps.
struct ZooEntry {
  spec::Job job = {};  // traced_job()
  ZooKey key = {};
  std::vector<forecast::Recording> members = {};
};

// What a page carries of one network.
std::string print_zoo(const std::vector<ZooEntry>& entries);
std::vector<ZooEntry> parse_zoo(std::string_view content, const std::string& source);

// Answers for networks that were recorded beforehand, where there is no libtorch: any batch, any number of samples of
// an evaluation, with the levers that were recorded. Equal to what a trace gives (planner/record_zoo.cpp checks it). A
// job that was not recorded is a user error that says what differs and how to record it.
class RecordedZoo final : public Tracer {
 public:
  explicit RecordedZoo(std::vector<ZooEntry> entries) : entries_(std::move(entries)) {}

  forecast::Recording step(const spec::Job& job, const SimulatedRank& rank) override;
  forecast::Recording evaluation(const spec::Job& job, const SimulatedRank& rank) override;
  std::vector<run::FeatureNeeds> features(const spec::Job& job, int64_t samples) override;
  // No network of the zoo is recorded in which a batch norm needs more than one sample.
  NormCheck norm_check() override;

 private:
  const ZooEntry& find(const spec::Job& job, const SimulatedRank& rank, ZooKey::Pass pass) const;
  [[noreturn]] void refuse(const spec::Job& job, const ZooKey& key) const;

  std::vector<ZooEntry> entries_;
};

}  // namespace lockstep::planning
