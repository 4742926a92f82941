// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/cut_state.h"

#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::step {

std::set<std::string> state_kinds(const std::vector<model::Named>& state, const std::vector<FlatBlock>& rows) {
  std::set<std::string> kinds;
  const std::string& first = rows.front().slots.front().name;
  for (const auto& entry : state) {
    const size_t dot = entry.name.find('.');
    if (dot != std::string::npos && entry.name.substr(dot + 1) == first) kinds.insert(entry.name.substr(0, dot + 1));
  }
  return kinds;
}

CutState::CutState(const Partitioning& partitioning, const std::vector<model::Named>& state)
    : partitioning_(partitioning) {
  for (const auto& entry : state) mine_[entry.name] = entry.tensor;
  for (const auto& kind : state_kinds(state, partitioning.rows())) kinds_.push_back(kind);
  if (partitioning.level() == 3) {
    kinds_.emplace_back();
    for (const auto& partition : partitioning.weight_partitions()) mine_[partition.name] = partition.tensor;
  }
  int64_t part = 0;
  for (const auto& block : partitioning.rows()) part += block.part;
  length_ = part * static_cast<int64_t>(kinds_.size());
  std::set<std::string> cut;
  for (const auto& whole : wholes()) cut.insert(whole.name);
  for (const auto& entry : state) {
    if (!cut.contains(entry.name)) shared_.push_back(entry);
  }
}

std::vector<CutState::Position> CutState::positions() const {
  std::vector<Position> all;
  int64_t part = 0;
  for (const auto& kind : kinds_) {
    for (const auto& block : partitioning_.rows()) {
      for (const auto& slot : block.slots) {
        all.push_back({{kind.empty(), base::text(kind, slot.name), &slot}, &block, part});
      }
      part += block.part;
    }
  }
  return all;
}

std::vector<CutState::Whole> CutState::wholes() const {
  std::vector<Whole> all;
  for (const auto& position : positions()) all.push_back(position.whole);
  return all;
}

void CutState::pack(at::Tensor& row) const {
  const c10::AutoGradMode no_graph(false);
  base::ensure(row.numel() == length_, "a row has the length of its partitions");
  for (const auto& position : positions()) {
    const Cut cut = cut_of(*position.block, *position.whole.slot, partitioning_.rank());
    if (cut.count == 0) continue;
    row.narrow(0, position.part + cut.at, cut.count).copy_(mine_.at(position.whole.name).flatten());
  }
}

std::vector<CutState::Partition> CutState::partitions(const at::Tensor& row, int64_t rank) const {
  base::ensure(row.numel() == length_, "a row has the length of its partitions");
  std::vector<Partition> all;
  for (const auto& position : positions()) {
    const Cut cut = cut_of(*position.block, *position.whole.slot, rank);
    if (cut.count == 0) continue;
    all.push_back({position.whole, cut.first, row.narrow(0, position.part + cut.at, cut.count)});
  }
  return all;
}

}  // namespace lockstep::step
