// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::task {
namespace {

using testing::HasSubstr;

std::vector<FieldValues> labels(const std::vector<int64_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{{.name = "label", .element = Element::int64}, {bytes.begin(), bytes.end()}}};
}

TEST(ClassifyScoreTest, LeavesOutWhatHasNoLabelAndMergesExactly) {
  const std::vector<int64_t> ids{4, 5, 6};
  const std::vector<float> logits{2, 0, 0, 3, 1, 0};
  const auto fields = labels({0, -1, 1});
  ClassifyScore whole({"cat", "dog"}, 4), first({"cat", "dog"}, 4), second({"cat", "dog"}, 4);
  whole.add({ids, fields, {{"logits", 2, logits}}});
  EXPECT_EQ(whole.samples(), 2);
  EXPECT_EQ(whole.headline().text, "top-1 50.00 %");
  EXPECT_EQ(whole.worst(), (std::vector<int64_t>{6}));
  const auto one = labels({0}), two = labels({-1, 1});
  first.add({std::span(ids).first(1), one, {{"logits", 2, std::span(logits).first(2)}}});
  second.add({std::span(ids).last(2), two, {{"logits", 2, std::span(logits).last(4)}}});
  first.merge(second.pack());
  EXPECT_EQ(first.pack(), whole.pack());
  EXPECT_EQ(whole.figures().at("top1").as_double(), 0.5);
  EXPECT_THAT(whole.to_text(), HasSubstr("most often confused\n"));
  EXPECT_TRUE(whole.is_sound());
}

TEST(ClassifyTest, SaysNothingOfTopFiveBelowSixClasses) {
  const std::vector<std::string> six{"a", "b", "c", "d", "e", "f"}, five{"a", "b", "c", "d", "e"};
  EXPECT_THAT(ClassifyScore(six, 1).line(), HasSubstr("top-5"));
  EXPECT_THAT(ClassifyScore(five, 1).line(), testing::Not(HasSubstr("top-5")));
  EXPECT_EQ(Classify(spec::Job(), six).report_words().at("also").size(), 1u);
  EXPECT_EQ(Classify(spec::Job(), five).report_words().at("also").size(), 0u);
}

TEST(ClassifyTest, RecordsTheMostProbableClassesFirst) {
  const Classify task(spec::Job(), {"cat", "dog", "owl"});
  const int64_t id = 3;
  const std::vector<float> shares{0.2F, 0.5F, 0.3F};
  const auto fields = labels({0});
  const Rows rows{std::span(&id, 1), fields, {{"probabilities", 3, shares}}};
  EXPECT_EQ(task.line(task.record(rows, 0, 2)), "dog 50.0 %, owl 30.0 %");
  EXPECT_EQ(task.num_outputs(), 3);
  EXPECT_EQ(task.columns(0), (std::vector<std::string>{"label", "confidence", "cat", "dog", "owl"}));
  EXPECT_EQ(task.cells(task.record(rows, 0, 3), 0),
            (std::vector<std::string>{"dog", "0.500000", "0.200000", "0.500000", "0.300000"}));
  EXPECT_EQ(task.columns(2), (std::vector<std::string>{"label", "confidence", "label_2", "confidence_2"}));
  EXPECT_EQ(task.cells(task.record(rows, 0, 2), 2), (std::vector<std::string>{"dog", "0.500000", "owl", "0.300000"}));
}

}  // namespace
}  // namespace lockstep::task
