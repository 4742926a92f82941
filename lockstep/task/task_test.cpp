// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::task {
namespace {

TEST(TaskTest, EveryTaskOfTheJobDocumentFillsTheFieldsThatItDeclares) {
  for (size_t i = 0; i < choices_of(spec::Task{}).size(); ++i) {
    spec::Job job;
    job.task = static_cast<spec::Task>(i);
    job.model.classes = 2;
    job.multilabel.classes = {"a", "b"};
    job.data.image_size = {32, 64};
    const auto task = make_task(job);
    ASSERT_NE(task, nullptr) << name_of(job.task);
    std::vector<FieldValues> values;
    std::vector<std::byte*> row;
    for (const Field& field : task->fields()) {
      values.push_back({field, std::vector<std::byte>(static_cast<size_t>(field.bytes()))});
    }
    for (auto& field : values) row.push_back(field.row(0));
    const auto encoder = task->encoder();
    encoder->draw(1, base::Random(1, 2, 3), row);
    EXPECT_NE(values[0].bytes, std::vector<std::byte>(values[0].bytes.size())) << name_of(job.task);
    encoder->blank(row);  // such a sample counts nowhere
    const auto score = task->score(1);
    const std::vector<float> outputs(2, 1);
    const int64_t id = 5;
    const std::vector<std::string> annotations{encoder->annotation()};
    score->add({std::span(&id, 1), values, {{"logits", 2, outputs}, {"value", 2, outputs}}, annotations});
    EXPECT_EQ(score->samples(), 0) << name_of(job.task);
  }
}

TEST(TaskTest, AHeadlineKnowsItsDirection) {
  EXPECT_TRUE((Headline{"top1", 0.9, true, ""}).better_than(0.8));
  EXPECT_FALSE((Headline{"mae", 0.9, false, ""}).better_than(0.8));
  EXPECT_FALSE((Headline{"top1", 0.8, true, ""}).better_than(0.8));
}

TEST(TaskTest, ASummaryComesBackFromItsJson) {
  const ScoreSummary summary{{"top1", 0.5, true, "top-1 50.00 %"},
                             base::parse_json(R"({"loss": 1.5, "top1": 0.5})", "f")};
  EXPECT_EQ(ScoreSummary::from_json(summary.to_json()), summary);
  EXPECT_EQ(summary.text(), "top-1 50.00 %, loss 1.5000");
  EXPECT_EQ(summary.figure("top1"), 0.5);
  EXPECT_EQ((ScoreSummary{summary.headline, base::Json::object()}).text(), "top-1 50.00 %");
  EXPECT_FALSE(summary.figure("mae").has_value());
}

// A file has null for what is not finite: a run must go on from a checkpoint behind such an evaluation.
TEST(ScoreSummaryTest, AHeadlineThatIsNotFiniteIsReadAsItWasWritten) {
  const ScoreSummary summary{{"mae", std::numeric_limits<double>::infinity(), false, "mean absolute error inf"},
                             base::parse_json(R"({"mae": null})", "f")};
  const ScoreSummary read = ScoreSummary::from_json(base::parse_json(summary.to_json().dump(), "state.json"));
  EXPECT_FALSE(std::isfinite(read.headline.value));
  EXPECT_EQ(read.headline.text, "mean absolute error inf");
  EXPECT_FALSE(read.headline.better_than(0.5));
}

}  // namespace
}  // namespace lockstep::task
