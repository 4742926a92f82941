// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/multilabel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::task {
namespace {

using testing::HasSubstr;

spec::Job animals() {
  spec::Job job;
  job.task = spec::Task::multilabel;
  job.multilabel.classes = {"cat", "dog", "owl"};
  job.data.image_size = 4;
  return job;
}

std::vector<FieldValues> label_fields(const std::vector<float>& labels, const std::vector<float>& valid) {
  const auto a = std::as_bytes(std::span(labels)), b = std::as_bytes(std::span(valid));
  return {{{.name = "label", .shape = {3}}, {a.begin(), a.end()}}, {{.name = "valid"}, {b.begin(), b.end()}}};
}

// The figures are those of scikit-learn's average_precision_score (tests/oracles/scores.py has many more).
TEST(MultilabelTest, AveragePrecisionTakesTiesTogether) {
  EXPECT_EQ(average_precision({{0.9F, true}, {0.8F, false}, {0.7F, true}}), (1 + 2.0 / 3) / 2);
  EXPECT_EQ(average_precision({{0.5F, true}, {0.5F, false}}), 0.5);
  EXPECT_EQ(average_precision({{0.5F, false}, {0.5F, true}, {NAN, true}}), (0.5 + 2.0 / 3) / 2);
  EXPECT_TRUE(std::isnan(average_precision({{0.5F, false}})));
}

TEST(MultilabelTest, ScoresTheSameWhateverTheRanks) {
  const auto task = make_multilabel(animals());
  const std::vector<int64_t> ids{7, 2, 5};
  const std::vector<float> logits{3, -1, -3, -2, 4, -3, 9, 9, 9};
  const auto fields = label_fields({1, 0, 0, 1, 1, 0, 0, 0, 0}, {1, 1, 0});
  const auto score = task->score(4);
  score->add({ids, fields, {{"logits", 3, logits}}});
  EXPECT_EQ(score->samples(), 2);
  EXPECT_EQ(score->headline().value, 1);  // both positives of cat before nothing; dog right; owl has none
  EXPECT_EQ(score->figures().at("f1").as_double(), 4.0 / 5);
  const auto softplus = [](double z) { return std::log1p(std::exp(z)); };
  const double loss = (softplus(-3) + softplus(-1) + softplus(-3) + softplus(2) + softplus(-4) + softplus(-3)) / 6;
  EXPECT_NEAR(score->figures().at("loss").as_double(), loss, 1e-12);
  EXPECT_EQ(score->worst(), (std::vector<int64_t>{2}));
  EXPECT_EQ(score->to_json().at("worst").items()[0].at("target").as_string(), "cat, dog");
  EXPECT_EQ(score->to_json().at("worst").items()[0].at("predicted").as_string(), "dog");
  const auto first = task->score(4), second = task->score(4);
  const auto one = label_fields({1, 0, 0}, {1}), two = label_fields({1, 1, 0, 0, 0, 0}, {1, 0});
  second->add({std::span(ids).first(1), one, {{"logits", 3, std::span(logits).first(3)}}});
  first->add({std::span(ids).last(2), two, {{"logits", 3, std::span(logits).last(6)}}});
  first->merge(second->pack());
  EXPECT_EQ(first->to_json(), score->to_json());
}

TEST(MultilabelTest, AnAnswerThatIsNoNumberIsTheBestOfNothing) {
  const auto task = make_multilabel(animals());
  const std::vector<int64_t> ids{1};
  const std::vector<float> logits{NAN, 1, 1};
  const auto fields = label_fields({1, 1, 0}, {1});
  const auto score = task->score(4);
  score->add({ids, fields, {{"logits", 3, logits}}});
  EXPECT_FALSE(score->is_sound());
}

TEST(MultilabelTest, ReadsNamesAndFlags) {
  const auto task = make_multilabel(animals());
  std::vector<FieldValues> values;
  std::vector<std::byte*> row;
  for (const Field& field : task->fields()) {
    values.push_back({field, std::vector<std::byte>(static_cast<size_t>(field.bytes()))});
  }
  for (auto& field : values) row.push_back(field.row(0));
  const auto encoder = task->encoder();
  const std::string jpeg = image::encode_jpeg(image::Image(4, 4), 80);
  const auto encode = [&](const std::string& json) {
    encoder->encode({0, std::as_bytes(std::span(jpeg)), {std::as_bytes(std::span(json))}}, std::nullopt, row);
    const float* labels = values[1].values<float>();
    return std::vector<float>{labels[0], labels[1], labels[2]};
  };
  using Labels = std::vector<float>;
  EXPECT_EQ(encode(R"({"labels": "cat| owl"})"), (Labels{1, 0, 1}));
  EXPECT_EQ(encode(R"({"labels": "dog;cat"})"), (Labels{1, 1, 0}));
  EXPECT_EQ(encode(R"({"labels": ["owl"]})"), (Labels{0, 0, 1}));
  EXPECT_EQ(encode(R"({"labels": ""})"), (Labels{0, 0, 0}));
  EXPECT_EQ(encode(R"({"cat": 0, "dog": 1, "owl": 1, "width": 4})"), (Labels{0, 1, 1}));
  EXPECT_EQ(*values[2].values<float>(), 1);
  const auto complaint = [&](const std::string& json) -> std::string {
    try {
      encode(json);
    } catch (const base::Error& error) {
      return error.message();
    }
    return "none";
  };
  EXPECT_THAT(complaint(R"({"labels": "cat|dgo"})"), HasSubstr("label 'dgo' is none of multilabel.classes"));
  EXPECT_THAT(complaint(R"({"labels": "cat|dgo"})"), HasSubstr("'dog'"));
  EXPECT_THAT(complaint(R"({"cat": 0, "dog": 1})"), HasSubstr("no number 'owl'"));
  EXPECT_THAT(complaint(R"({"cat": 0, "dog": -1, "owl": 1})"), HasSubstr("0 or 1 is expected"));
  encoder->encode({0, std::as_bytes(std::span(jpeg)), {}}, std::nullopt, row);  // a prediction
  EXPECT_EQ(*values[2].values<float>(), 0);
}

TEST(MultilabelTest, RecordsEveryLabelFromTheThresholdOn) {
  const auto task = make_multilabel(animals());
  const int64_t id = 3;
  const std::vector<float> shares{0.6F, 0.1F, 0.9F};
  const std::vector<FieldValues> fields;
  const Rows rows{std::span(&id, 1), fields, {{"probabilities", 3, shares}}};
  const base::Json record = task->record(rows, 0, 1);
  EXPECT_EQ(task->line(record), "owl, cat  (owl 90.0 %)");
  EXPECT_EQ(task->columns(0), (std::vector<std::string>{"labels", "cat", "dog", "owl"}));
  EXPECT_EQ(task->cells(task->record(rows, 0, 3), 0),
            (std::vector<std::string>{"owl|cat", "0.600000", "0.100000", "0.900000"}));
  EXPECT_EQ(task->cells(record, 1), (std::vector<std::string>{"owl|cat", "owl", "0.900000"}));
}

TEST(MultilabelTest, NeedsItsClasses) {
  spec::Job job = animals();
  job.multilabel.classes = {};
  EXPECT_THROW(make_multilabel(job), base::Error);
  job.multilabel.classes = {"cat", "dog", "cat"};
  EXPECT_THROW(make_multilabel(job), base::Error);
}

}  // namespace
}  // namespace lockstep::task
