// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/saved_position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

using ::testing::HasSubstr;

class SavedPositionTest : public ::testing::Test {
 protected:
  SavedPositionTest() {
    training_.global_batch = 8;
    training_.epochs = 3;
  }
  Timetable timetable() const { return {training_, 40}; }  // 5 steps an epoch
  base::Json state(int64_t step, int64_t shift = 0) const {
    base::Json all = base::Json::object();
    all["step"] = step;
    all["data_shift"] = shift;
    all["rewound_from"] = shift > 0 ? step + shift : 0;
    all["epoch"] = timetable().epoch_at(step);
    all["loader"] = timetable().loader_state(step + shift).to_json();
    return all;
  }
  std::string complaint(const base::Json& saved, base::Blame blame) const {
    try {
      check_saved_position(saved, timetable(), "step-7");
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), blame) << error.what();
      return error.what();
    }
    return "";
  }

  spec::Training training_;
};

TEST_F(SavedPositionTest, AcceptsWhatARunSaves) {
  for (const int64_t step : {0, 1, 5, 7, 15}) EXPECT_EQ(complaint(state(step), base::Blame::bug), "") << step;
  EXPECT_EQ(complaint(state(7, 4), base::Blame::bug), "");
  base::Json old = base::Json::object();  // of a version that wrote less
  old["step"] = 7;
  EXPECT_EQ(complaint(old, base::Blame::bug), "");
}

TEST_F(SavedPositionTest, AStepBeyondTheJobIsNamed) {
  EXPECT_THAT(complaint(state(16), base::Blame::user), HasSubstr("16 steps are trained, the job has only 15"));
}

TEST_F(SavedPositionTest, BelievesNoForgedStepOrShift) {
  const auto forged = [&](const char* key, int64_t value) {
    base::Json saved = state(7);
    saved[key] = value;
    return complaint(saved, base::Blame::machine);
  };
  EXPECT_THAT(forged("step", -1), HasSubstr("step -1"));
  EXPECT_THAT(forged("step", 12), HasSubstr("step 12 is in epoch 2.4, not 1.4"));
  EXPECT_THAT(forged("data_shift", 3), HasSubstr("data_shift 3 without a rewind"));
  EXPECT_THAT(forged("data_shift", -3), HasSubstr("data_shift -3"));
  base::Json saved = state(7, 4);
  saved["data_shift"] = 5;
  EXPECT_THAT(complaint(saved, base::Blame::machine), HasSubstr("5 batches left out the data go on at"));
}

}  // namespace
}  // namespace lockstep::run
