// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/family.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/kernel_grid.h"

namespace lockstep::forecast {
namespace {

// A made-up step whose every figure is affine in the batch, and that merges two operators at batch 4 only.
Recording step_of(int64_t batch) {
  Recording recording;
  recording.title = "made up";
  recording.micro_batch = batch;
  recording.steps = 1;
  recording.blocks = {"stem"};
  std::vector<Operator> calls = {
      {.name = "aten::mm", .kind = OperatorClass::matmul, .flops = 3e15 + 7 * batch, .bytes = 11, .shape = {batch, 4}},
      {.name = "aten::mm", .kind = OperatorClass::matmul, .flops = 3e15 + 28, .bytes = 11, .shape = {4, 4}},
      {.name = "aten::add", .bytes = 1e6 + 1e9 * batch, .block = 0}};
  const auto add = [&](EventKind kind, int64_t id, int64_t bytes) {
    Event event;
    event.kind = kind;
    event.id = id;
    event.bytes = bytes;
    recording.events.push_back(event);
  };
  add(EventKind::step_begin, 0, 0);
  for (const Operator& call : calls) {
    auto at = std::find(recording.operators.begin(), recording.operators.end(), call);
    if (at == recording.operators.end()) at = recording.operators.insert(at, call);
    const int64_t index = at - recording.operators.begin();
    add(EventKind::birth, static_cast<int64_t>(recording.events.size()), 1000 + 12345 * batch);
    add(EventKind::run, index, 0);
  }
  add(EventKind::step_end, 0, 0);
  return recording;
}

TEST(FamilyTest, GivesTheRecordingOfABatchThatWasNeverTraced) {
  const Family family({step_of(16), step_of(2)});
  for (const int64_t batch : {1, 2, 3, 4, 7, 16, 1024}) EXPECT_EQ(family.at(batch), step_of(batch)) << batch;
}

TEST(FamilyTest, GoesFromMemberToMemberWhereTheLineHasAKink) {
  Recording large = step_of(64);
  large.events[1].bytes += 1'000'000;
  const Family family({step_of(2), step_of(16), large});
  EXPECT_EQ(family.at(8), step_of(8));
  EXPECT_EQ(family.at(40).events[1].bytes, step_of(40).events[1].bytes + 500'000);
}

TEST(FamilyTest, RoundsUpWhereTheLineIsNotWhole) {
  Recording small = step_of(2);
  Recording large = step_of(5);
  small.events[1].bytes = 10;
  large.events[1].bytes = 20;
  const Family family({small, large});
  EXPECT_EQ(family.at(3).events[1].bytes, 14);
  EXPECT_EQ(family.at(1).events[1].bytes, 7);  // 6.67
}

// A step of one of our own kernels, whose partial sums grow by whole blocks, up to a limit.
Recording norm_of(int64_t batch) {
  Recording recording;
  recording.micro_batch = batch;
  recording.steps = 1;
  const auto sums = static_cast<int64_t>(sizeof(float)) * BatchNormGrid(batch * 56 * 56, 64).sums();
  const int64_t map = batch * 56 * 56 * 64 * 2;
  recording.operators = {{.name = "lockstep::fused_batch_norm",
                          .bytes = static_cast<double>(3 * map + 2 * sums),
                          .launches = 3,
                          .shape = {batch, 64, 56, 56}}};
  recording.events = {{.kind = EventKind::step_begin},
                      {.kind = EventKind::birth, .id = 0, .bytes = map},
                      {.kind = EventKind::birth, .id = 1, .bytes = sums},
                      {.kind = EventKind::run, .id = 0},
                      {.kind = EventKind::step_end}};
  return recording;
}

TEST(FamilyTest, KnowsThePartialSumsOfOurKernels) {
  for (const char* name : {"lockstep::fused_batch_norm", "lockstep::column_sums", "lockstep::gelu_backward"}) {
    const auto step_of_kernel = [&](int64_t batch) {
      Recording recording = norm_of(batch);
      recording.operators[0].name = name;
      return recording;
    };
    const Family family({step_of_kernel(16), step_of_kernel(48)});
    for (const int64_t batch : {1, 3, 20, 22, 40, 500}) {
      EXPECT_EQ(family.at(batch), step_of_kernel(batch)) << name << batch;
    }
  }
}

TEST(FamilyTest, RefusesRecordingsThatDoNotCorrespond) {
  Recording other = step_of(16);
  other.events.pop_back();
  EXPECT_FALSE(Family::corresponds(step_of(2), other));
  EXPECT_THROW(Family({step_of(2), other}), base::Error);
  other = step_of(16);
  other.operators[0].name = "aten::bmm";
  EXPECT_FALSE(Family::corresponds(step_of(2), other));
  EXPECT_TRUE(Family::corresponds(step_of(2), step_of(4)));
}

}  // namespace
}  // namespace lockstep::forecast
