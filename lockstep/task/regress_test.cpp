// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/regress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::task {
namespace {

using testing::HasSubstr;

std::vector<FieldValues> fields_of(const std::vector<float>& values, const std::vector<float>& valid) {
  const auto a = std::as_bytes(std::span(values)), b = std::as_bytes(std::span(valid));
  return {{{.name = "value"}, {a.begin(), a.end()}}, {{.name = "valid"}, {b.begin(), b.end()}}};
}

spec::Job ages() {
  spec::Job job;
  job.task = spec::Task::regress;
  job.regress.value = "age";
  job.data.image_size = 4;
  return job;
}

TEST(RegressTest, ScoresTheSameWhateverTheRanks) {
  const auto task = make_regress(ages());
  const std::vector<int64_t> ids{2, 0, 1};
  const std::vector<float> answers{1, 5, 4};
  const auto fields = fields_of({2, 3, 7}, {1, 1, 0});
  const auto score = task->score(1);
  score->add({ids, fields, {{"value", 1, answers}}});
  EXPECT_EQ(score->samples(), 2);
  EXPECT_EQ(score->headline().value, 1.5);
  EXPECT_FALSE(score->headline().higher_is_better);
  EXPECT_EQ(score->figures().at("loss").as_double(), 2.5);
  EXPECT_EQ(score->figures().at("r2").as_double(), 1 - 2.5 / 0.25);
  EXPECT_EQ(score->worst(), (std::vector<int64_t>{0}));
  const auto other = task->score(1), empty = task->score(1);
  empty->merge(score->pack());
  other->merge(empty->pack());
  EXPECT_EQ(other->to_json(), score->to_json());
}

TEST(RegressTest, AnAnswerThatIsNoNumberIsTheWorst) {
  const auto task = make_regress(ages());
  const std::vector<int64_t> ids{0, 1, 2};
  const std::vector<float> answers{9, NAN, 1};
  const auto fields = fields_of({2, 3, 7}, {1, 1, 1});
  const auto score = task->score(3);
  score->add({ids, fields, {{"value", 1, answers}}});
  EXPECT_EQ(score->worst(), (std::vector<int64_t>{1, 0, 2}));
  EXPECT_FALSE(score->is_sound());
  EXPECT_FALSE(score->summary().figure("mae"));
}

TEST(RegressTest, ReadsTheNumberOfTheSamplesJson) {
  const auto task = make_regress(ages());
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
    return *values[1].values<float>();
  };
  EXPECT_EQ(encode(R"({"age": 31.5})"), 31.5F);
  EXPECT_EQ(*values[2].values<float>(), 1);
  try {
    encode(R"({"name": "a", "height": 2})");
    FAIL() << "there is no age";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no number 'age' (regress.value)"));
    EXPECT_EQ(error.fix(), "it has name, height");
  }
  encoder->encode({0, std::as_bytes(std::span(jpeg)), {}}, std::nullopt, row);  // a prediction
  EXPECT_EQ(*values[2].values<float>(), 0);
}

}  // namespace
}  // namespace lockstep::task
