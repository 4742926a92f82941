// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/capture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace lockstep::run {
namespace {

// The first step of [begin, end) that is captured, counted batch by batch as a run does it.
std::optional<int64_t> captured_at(int64_t begin, int64_t end, int64_t samples, int64_t global_batch) {
  CaptureCount count;
  for (int64_t step = begin; step < end; ++step) {
    const int64_t an_epoch = (samples + global_batch - 1) / global_batch;
    const int64_t rows = std::min(global_batch, samples - step % an_epoch * global_batch);
    if (count.is_due(std::to_string(rows), rows)) return step;
  }
  return std::nullopt;
}

TEST(CaptureTest, ComesBehindElevenStepsOfItsShape) {
  CaptureCount count;
  for (int64_t i = 0; i < kEagerSteps; ++i) EXPECT_FALSE(count.is_due("16 rows", 16)) << i;
  EXPECT_TRUE(count.is_due("16 rows", 16));
}

TEST(CaptureTest, OddBatchesBetweenDoNotPutItOff) {
  EXPECT_EQ(captured_at(0, 100, 16 * 5 + 6, 16),
            13);                                   // two epochs of 5 full batches and an odd one, and 2 of the third
  EXPECT_EQ(captured_at(0, 100, 16 + 6, 16), 22);  // one full batch an epoch
}

TEST(CaptureTest, ShapesThatTakeTurnsAreCountedEachForItself) {
  CaptureCount count;
  for (int64_t i = 0; i < kEagerSteps; ++i) {
    EXPECT_FALSE(count.is_due("800x1088", 8)) << i;
    EXPECT_FALSE(count.is_due("1088x800", 8)) << i;
  }
  EXPECT_TRUE(count.is_due("1088x800", 8));
}

TEST(CaptureTest, AnOddBatchIsNeverTheOne) {
  CaptureCount count;
  count.is_due("16 rows", 16);
  for (int64_t i = 0; i < 3 * kEagerSteps; ++i) EXPECT_FALSE(count.is_due("6 rows", 6)) << i;
}

TEST(CaptureTest, APlanKnowsBeforehandWhatARunCounts) {
  for (const int64_t samples : {3, 16, 17, 32, 86, 250}) {
    for (int64_t begin = 0; begin < 20; ++begin) {
      for (int64_t end = begin + 1; end < begin + 40; ++end) {
        if (begin % ((samples + 15) / 16) != 0) continue;  // a phase begins with an epoch
        EXPECT_EQ(reaches_capture(begin, end, samples, 16), captured_at(begin, end, samples, 16).has_value())
            << samples << " samples, steps " << begin << " to " << end;
      }
    }
  }
}

TEST(CaptureTest, ASmallerBatchBehindTheCapturedOneRunsBesideIt) {
  EXPECT_EQ(odd_batch(0, 18, 86, 16), 6);  // the third epoch ends behind step 13
  EXPECT_EQ(odd_batch(0, 17, 86, 16), 0);
  EXPECT_EQ(odd_batch(0, 1000, 80, 16), 0);
  EXPECT_EQ(odd_batch(0, 1000, 6, 16), 0) << "all are alike";
  for (int64_t begin = 0; begin < 24; begin += 6) {
    for (int64_t end = begin + 1; end < begin + 40; ++end) {
      const auto captured = captured_at(begin, end, 86, 16);
      bool smaller = false;
      for (int64_t step = captured.value_or(end); step < end; ++step) smaller |= step % 6 == 5;
      EXPECT_EQ(odd_batch(begin, end, 86, 16), smaller ? 6 : 0) << begin << " to " << end;
    }
  }
}

TEST(CaptureTest, EveryBatchIsFullWhereTheSamplesAreNotKnown) {
  EXPECT_EQ(full_batches(0, 12, 0, 256), 12);
  EXPECT_TRUE(reaches_capture(0, kEagerSteps + 1, 0, 256));
  EXPECT_FALSE(reaches_capture(0, kEagerSteps, 0, 256));
}

}  // namespace
}  // namespace lockstep::run
