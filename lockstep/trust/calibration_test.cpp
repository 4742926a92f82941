// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/trust/drawn_rows.h"

namespace lockstep::trust {
namespace {

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

Calibration small_calibration() {
  Calibration calibration = calibrate(drawn_rows(400, 3, 2, 11));
  calibration.terms.name = "small";
  calibration.terms.weights_sha256 = "abc";
  calibration.terms.keys = base::Json::object();
  calibration.terms.classes = {"a", "b", "c"};
  return calibration;
}

TEST(CalibrationTest, UsesEachRowForOneThing) {
  const Calibration calibration = small_calibration();
  int64_t report = 0;
  for (int64_t id = 0; id < 400; ++id) report += use_of(id) == RowUse::report ? 1 : 0;
  EXPECT_EQ(calibration.fitted_rows + calibration.threshold_rows() + report, 400);
  EXPECT_NEAR(static_cast<double>(report), 200, 40);
  EXPECT_NEAR(calibration.temperature, 2, 0.5);
}

TEST(CalibrationTest, ComesBackFromItsFile) {
  const base::TemporaryFolder run;
  EXPECT_FALSE(read_calibration(run.path()));
  const Calibration calibration = small_calibration();
  write_calibration(run.path(), calibration);
  const auto found = read_calibration(run.path(), calibration.terms);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->to_json(), calibration.to_json());
  const std::vector<float> logits{1, 0.5, -3};
  EXPECT_EQ(found->set_for(logits, 0.95), calibration.set_for(logits, 0.95));
  EXPECT_LE(found->set_for(logits, 0.5).size(), found->set_for(logits, 0.95).size());
}

TEST(CalibrationTest, OfOtherWeightsItIsRefused) {
  const base::TemporaryFolder run;
  const Calibration calibration = small_calibration();
  write_calibration(run.path(), calibration);
  results::Terms other = calibration.terms;
  other.weights_sha256 = "def";
  EXPECT_THAT(message_of([&] { read_calibration(run.path(), other); }),
              testing::HasSubstr("belongs to another network: the weights were those of sha256 abc, now def"));
  base::write_file(calibration_file(run.path()), "{\"format\": 7}");
  EXPECT_THAT(message_of([&] { read_calibration(run.path()); }), testing::HasSubstr("no calibration of format 1"));
}

TEST(CalibrationTest, SaysWhatTheRowsCannotPromise) {
  EXPECT_THAT(message_of([] { calibrate(drawn_rows(20, 3, 2, 1)); }), testing::HasSubstr("20 rows are too few"));
  const Calibration calibration = small_calibration();
  const std::vector<float> logits{1, 0.5, -3};
  EXPECT_THAT(message_of([&] { calibration.set_for(logits, 0.9999); }), testing::HasSubstr("needs 9999 rows"));
  EXPECT_THAT(message_of([&] { calibration.set_for(logits, 1.5); }), testing::HasSubstr("coverage of a set is 1.5"));
  EXPECT_THAT(message_of([&] { calibration.least_confidence(0.0001); }), testing::HasSubstr("no confidence is known"));
  EXPECT_THAT(message_of([&] { calibration.unusual_below("neighbour", 0.05); }), testing::HasSubstr("'neighbour'"));
  EXPECT_THAT(message_of([&] { calibration.unusual_below("energy", 0.0001); }), testing::HasSubstr("needs 9999 rows"));
  EXPECT_THAT(message_of([] { share_from("95", "--coverage"); }), testing::HasSubstr("--coverage 95"));
  EXPECT_DOUBLE_EQ(share_from("95%", "--coverage"), 0.95);
}

}  // namespace
}  // namespace lockstep::trust
