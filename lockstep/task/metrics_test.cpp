// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

struct Answers {
  std::vector<float> logits;
  std::vector<int64_t> targets, ids;
};

Answers random_answers(int64_t samples, int64_t classes, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Answers answers;
  for (int64_t i = 0; i < samples; ++i) {
    answers.ids.push_back(i);
    answers.targets.push_back(static_cast<int64_t>(random() % static_cast<unsigned>(classes)));
    for (int64_t c = 0; c < classes; ++c) {
      answers.logits.push_back(normal(random) + (c == answers.targets.back() ? 1.0F : 0.0F));
    }
  }
  return answers;
}

void add_range(Metrics& metrics, const Answers& all, size_t from, size_t to) {
  const auto width = static_cast<size_t>(metrics.classes());
  metrics.add(std::span(all.logits).subspan(from * width, (to - from) * width),
              std::span(all.targets).subspan(from, to - from), std::span(all.ids).subspan(from, to - from));
}

TEST(MetricsTest, CountsRightAndWrong) {
  Metrics metrics(3);
  // predicted 0, 1, 1, 2 for targets 0, 1, 2, 2
  metrics.add(std::vector<float>{5, 0, 0, 0, 5, 0, 0, 5, 1, 0, 0, 5}, std::vector<int64_t>{0, 1, 2, 2},
              std::vector<int64_t>{10, 11, 12, 13});
  EXPECT_EQ(metrics.samples(), 4);
  EXPECT_DOUBLE_EQ(metrics.top1(), 0.75);
  EXPECT_DOUBLE_EQ(metrics.top5(), 1.0);
  EXPECT_EQ(metrics.confusion(2, 1), 1);
  EXPECT_DOUBLE_EQ(metrics.score(1).precision, 0.5);
  EXPECT_DOUBLE_EQ(metrics.score(1).recall, 1.0);
  EXPECT_DOUBLE_EQ(metrics.score(2).recall, 0.5);
  EXPECT_DOUBLE_EQ(metrics.score(2).f1, 2.0 / 3);
  EXPECT_EQ(metrics.most_confused(9), (std::vector<Confusion>{{2, 1, 1}}));
  ASSERT_EQ(metrics.worst().size(), 1U);
  EXPECT_EQ(metrics.worst()[0].sample_id, 12);
  const double sum = std::exp(0) + std::exp(5) + std::exp(1);
  EXPECT_NEAR(metrics.worst()[0].loss, std::log(sum) - 1, 1e-12);
  EXPECT_NEAR(metrics.worst()[0].confidence, std::exp(5) / sum, 1e-12);
}

TEST(MetricsTest, LossOfAUniformAnswerIsTheLogOfTheClasses) {
  Metrics metrics(10);
  metrics.add(std::vector<float>(20, 0.5F), std::vector<int64_t>{3, 0}, std::vector<int64_t>{0, 1});
  EXPECT_NEAR(metrics.loss(), std::log(10.0), 1e-6);
}

TEST(MetricsTest, TopFiveNeedsTheTargetAmongTheFiveHighest) {
  Metrics metrics(7);
  const std::vector<float> falling = {7, 6, 5, 4, 3, 2, 1};
  for (int64_t target = 0; target < 7; ++target) {
    metrics.add(falling, std::vector<int64_t>{target}, std::vector<int64_t>{target});
  }
  EXPECT_DOUBLE_EQ(metrics.top5(), 5.0 / 7);
  EXPECT_DOUBLE_EQ(metrics.top1(), 1.0 / 7);
}

TEST(MetricsTest, TiesGoToTheLowerClass) {
  Metrics metrics(6);
  metrics.add(std::vector<float>(6, 1.0F), std::vector<int64_t>{5}, std::vector<int64_t>{0});
  EXPECT_EQ(metrics.confusion(5, 0), 1);
  EXPECT_DOUBLE_EQ(metrics.top5(), 0.0);
}

TEST(MetricsTest, AnySplitOverRanksGivesTheSameBits) {
  const Answers all = random_answers(1000, 11, 1);
  Metrics whole(11, 5);
  add_range(whole, all, 0, 1000);
  for (const size_t ranks : {2U, 3U, 7U}) {
    Metrics merged(11, 5);
    for (size_t r = ranks; r-- > 0;) {  // in another order, through the packed form
      Metrics part(11, 5);
      add_range(part, all, r * 1000 / ranks, (r + 1) * 1000 / ranks);
      merged.merge(Metrics::unpack(part.pack()));
    }
    EXPECT_EQ(merged.loss(), whole.loss());
    EXPECT_EQ(merged.pack(), whole.pack());
  }
}

TEST(MetricsTest, KeepsTheWorstMistakesOnly) {
  Metrics metrics(2, 3);
  for (int64_t i = 1; i <= 9; ++i) {
    metrics.add(std::vector<float>{static_cast<float>(i), 0}, std::vector<int64_t>{1}, std::vector<int64_t>{i});
  }
  ASSERT_EQ(metrics.worst().size(), 3U);
  EXPECT_EQ(metrics.worst()[0].sample_id, 9);
  EXPECT_EQ(metrics.worst()[2].sample_id, 7);
}

TEST(MetricsTest, SkippedSamplesHaveNoPart) {
  Metrics metrics(2);
  metrics.add(std::vector<float>{1, 0, 0, 0}, std::vector<int64_t>{0, -1}, std::vector<int64_t>{0, 1});
  EXPECT_EQ(metrics.samples(), 1);
  EXPECT_DOUBLE_EQ(metrics.top1(), 1.0);
}

TEST(MetricsTest, NonFiniteAnswersAreCountedNotSummed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Metrics metrics(2);
  metrics.add(std::vector<float>{nan, nan, 0, 0}, std::vector<int64_t>{1, 0}, std::vector<int64_t>{0, 1});
  EXPECT_EQ(metrics.nonfinite(), 1);
  EXPECT_NEAR(metrics.loss(), std::log(2.0), 1e-6);
}

TEST(MetricsTest, ANetworkOfNansIsRightForNothingAndHasNoLoss) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Metrics metrics(2);
  metrics.add(std::vector<float>{nan, nan, nan, nan}, std::vector<int64_t>{0, 1}, std::vector<int64_t>{0, 1});
  metrics.add(std::vector<float>{1, nan}, std::vector<int64_t>{0}, std::vector<int64_t>{2});
  const Metrics other = Metrics::unpack(metrics.pack());
  metrics.merge(other);
  EXPECT_EQ(metrics.samples(), 6);
  EXPECT_EQ(metrics.nonfinite(), 6);
  EXPECT_EQ(metrics.top1(), 0);
  EXPECT_EQ(metrics.top5(), 0);
  EXPECT_TRUE(std::isnan(metrics.loss()));
  EXPECT_EQ(metrics.loss_text(), "not finite (of 6 samples)");
  EXPECT_EQ(metrics.score(0).samples, 4);
  EXPECT_EQ(metrics.score(0).recall, 0);
  EXPECT_EQ(to_json(metrics, {"cat", "dog"}).dump(-1).find("\"loss\":null") == std::string::npos, false);
}

TEST(MetricsTest, LossesThatWereCutAreToldAsABound) {
  Metrics metrics(2);
  metrics.add(std::vector<float>{3e8F, 0, 0, 0}, std::vector<int64_t>{1, 0}, std::vector<int64_t>{0, 1});
  metrics = Metrics::unpack(metrics.pack());
  EXPECT_EQ(metrics.loss_cut(), 1);
  EXPECT_NEAR(metrics.loss(), (1e4 + std::log(2.0)) / 2, 1e-6);
  EXPECT_EQ(metrics.loss_text(), "at least 5000.3466");
}

TEST(MetricsTest, NothingSeenIsZeroNotNan) {
  const Metrics metrics(3);
  EXPECT_EQ(metrics.top1(), 0);
  EXPECT_EQ(metrics.loss(), 0);
  EXPECT_EQ(metrics.score(0).f1, 0);
}

TEST(MetricsTest, JsonNamesTheClasses) {
  Metrics metrics(2);
  metrics.add(std::vector<float>{0, 1}, std::vector<int64_t>{0}, std::vector<int64_t>{4});
  const base::Json json = to_json(metrics, {"cat", "dog"});
  EXPECT_EQ(json.at("most_confused").items()[0].at("predicted").as_string(), "dog");
  EXPECT_EQ(json.at("worst").items()[0].at("sample").as_int(), 4);
  EXPECT_EQ(json.at("confusion").items()[0].items()[1].as_int(), 1);
  EXPECT_THROW(to_json(metrics, {"cat"}), base::Error);
}

}  // namespace
}  // namespace lockstep::task
