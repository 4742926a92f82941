// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/ordinal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

const std::vector<std::string> kGrades{"0 none", "1 mild", "2 severe"};

std::unique_ptr<Task> grades() {
  spec::Job job;
  job.task = spec::Task::ordinal;
  job.data.image_size = 4;
  return make_ordinal(job, kGrades);
}

std::vector<FieldValues> labels_of(const std::vector<int64_t>& labels) {
  const auto bytes = std::as_bytes(std::span(labels));
  return {{{.name = "label", .element = Element::int64}, {bytes.begin(), bytes.end()}}};
}

TEST(OrdinalTest, ScoresByTheDistanceOfTheMedianTheSameWhateverTheRanks) {
  const auto task = grades();
  EXPECT_EQ(task->num_outputs(), 3);
  const std::vector<int64_t> ids{3, 0, 1, 2};
  const float half = std::log(0.4F), third = std::log(0.35F), rest = std::log(0.25F);
  // The most probable class of the first row is 0, its median 1.
  const std::vector<float> logits{half, third, rest, 9, 0, 0, 0, 0, 9, 0, 9, 0};
  const auto fields = labels_of({1, 2, 2, -1});
  const auto score = task->score(5);
  score->add({ids, fields, {{"logits", 3, logits}}});
  EXPECT_EQ(score->samples(), 3);
  EXPECT_NEAR(score->headline().value, 2.0 / 3, 1e-12);  // 0, 2 and 0
  EXPECT_FALSE(score->headline().higher_is_better);
  EXPECT_NEAR(score->figures().at("accuracy").as_double(), 2.0 / 3, 1e-12);
  EXPECT_EQ(score->worst(), (std::vector<int64_t>{0}));
  EXPECT_EQ(score->to_json().at("worst").items()[0].at("target").as_string(), "2 severe");
  EXPECT_THAT(score->to_text(), testing::ContainsRegex("2 severe +2 +1\\.000"));
  const auto other = task->score(5), empty = task->score(5);
  empty->merge(score->pack());
  other->merge(empty->pack());
  EXPECT_EQ(other->to_json(), score->to_json());
}

TEST(OrdinalTest, TheLossIsThatOfTheBorders) {
  const auto score = grades()->score(1);
  const std::vector<int64_t> ids{0};
  const std::vector<float> logits{std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const auto fields = labels_of({1});
  score->add({ids, fields, {{"logits", 3, logits}}});
  EXPECT_NEAR(score->figures().at("loss").as_double(), -std::log(0.5) - std::log(0.8), 1e-6);
}

TEST(OrdinalTest, AnAnswerThatIsNoNumberIsTheBestOfNothing) {
  const auto score = grades()->score(1);
  const std::vector<int64_t> ids{0};
  const std::vector<float> logits{0, NAN, 0};
  const auto fields = labels_of({2});
  score->add({ids, fields, {{"logits", 3, logits}}});
  EXPECT_FALSE(score->is_sound());
}

TEST(OrdinalTest, PredictsTheMedianTheExpectedPositionAndEveryProbability) {
  const auto task = grades();
  const std::vector<int64_t> ids{0};
  const std::vector<float> shares{0.4F, 0.35F, 0.25F};
  const std::vector<FieldValues> fields;
  const base::Json record = task->record({ids, fields, {{"probabilities", 3, shares}}}, 0, 1);
  EXPECT_EQ(task->line(record), "1 mild 35.0 %, expected position 0.85");
  EXPECT_EQ(task->columns(1), (std::vector<std::string>{"label", "expected", "0 none", "1 mild", "2 severe"}));
  EXPECT_EQ(task->cells(record, 1),
            (std::vector<std::string>{"1 mild", "0.850000", "0.400000", "0.350000", "0.250000"}));
}

TEST(OrdinalTest, KappaIsScikitLearns) {  // cohen_kappa_score(..., weights="quadratic") of scikit-learn 1.9.1
  const std::vector<std::pair<int64_t, int64_t>> pairs{{0, 0}, {1, 2}, {2, 2}, {2, 1}, {3, 3}, {1, 1}, {0, 3}};
  EXPECT_NEAR(quadratic_kappa(pairs, 4), 0.3185840707964601, 1e-9);
  EXPECT_EQ(quadratic_kappa(std::vector<std::pair<int64_t, int64_t>>{{1, 1}}, 4), 1);
  EXPECT_EQ(quadratic_kappa({}, 4), 0);
}

}  // namespace
}  // namespace lockstep::task
