// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/training_features.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::trust {
namespace {

TEST(TrainingFeaturesTest, ComeBackFromTheirFileAndOnlyForTheirWeights) {
  ClassRows rows;
  base::Random random(3);
  std::vector<std::string> names;
  for (int64_t i = 0; i < 30; ++i) {
    std::vector<float> feature(4);
    for (float& value : feature) value = static_cast<float>(random.normal() + static_cast<double>(i % 2));
    rows.add(std::vector<float>{0, 0}, i % 2, i, feature);
    names.push_back("image " + std::to_string(i));
  }
  const base::TemporaryFolder run;
  EXPECT_FALSE(read_features(run.path(), "abc"));
  const TrainingFeatures written = make_training_features(rows, names, "abc");
  write_features(run.path(), written);
  EXPECT_THROW(read_features(run.path(), "def"), base::Error);
  const auto found = read_features(run.path(), "abc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->names, names);
  EXPECT_EQ(found->classes, 2);
  const std::vector<float> query{1, 0, 2, 0};
  EXPECT_EQ(found->gaussians.score(query), written.gaussians.score(query));
  EXPECT_EQ(nearest_rows(found->rows(), rows.feature(7), 1).front().row, 7);
}

TEST(TrainingFeaturesTest, WhatDoesNotFitTogetherIsRefused) {
  ClassRows rows;
  for (int64_t i = 0; i < 6; ++i) {
    rows.add(std::vector<float>{0, 0}, i % 2, i,
             std::vector<float>{static_cast<float>(i), 1, static_cast<float>(i % 3)});
  }
  const base::TemporaryFolder run;
  const TrainingFeatures whole = make_training_features(rows, std::vector<std::string>(6, "x"), "abc");
  TrainingFeatures without_name = whole, without_class = whole;
  without_name.names.pop_back();
  without_class.labels[2] = -1;
  for (const auto& broken : {without_name, without_class}) {
    write_features(run.path(), broken);
    EXPECT_THROW(read_features(run.path(), "abc"), base::Error);
  }
}

}  // namespace
}  // namespace lockstep::trust
