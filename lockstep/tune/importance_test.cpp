// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/importance.h"

#include <gtest/gtest.h>

#include "lockstep/base/random.h"

namespace lockstep::tune {
namespace {

TEST(ImportanceTest, PutsWhatDecidesFirst) {
  const Space space = make_space(
      spec::parse_study(base::parse_json(
          R"({"space": {"idle": {"range": [0, 1]}, "decides": {"range": [0, 1]}, "some": {"choice": ["a", "b"]}}})",
          "s")),
      nullptr);
  base::Random random(1);
  std::vector<Trial> trials;
  for (int i = 0; i < 200; ++i) {
    Trial trial;
    trial.state = TrialState::complete;
    trial.values = {{"idle", random.uniform()}, {"decides", random.uniform()}, {"some", random.below(2)}};
    trial.objective = 10 * trial.values["decides"] + 0.5 * trial.values["some"];
    trials.push_back(trial);
  }
  const auto shares = importances(space, trials, true);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_EQ(shares[0].first, "decides");
  EXPECT_GT(shares[0].second, 0.7);
  trials.resize(5);
  EXPECT_TRUE(importances(space, trials, true).empty());
}

}  // namespace
}  // namespace lockstep::tune
