// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption_score.h"

#include <gtest/gtest.h>

namespace lockstep::task {
namespace {

TEST(CaptionScoreTest, WithoutASampleThereIsNothingToTell) {
  const auto words = std::make_shared<Vocabulary>(std::vector<std::string>{"<pad>", "<start>", "<end>", "<unk>"});
  const auto score = make_caption_score(words, 3, nullptr);
  EXPECT_EQ(score->samples(), 0);
  EXPECT_EQ(score->headline().name, "cider");
  EXPECT_EQ(score->figures().at("bleu4").as_double(), 0);
  EXPECT_EQ(score->to_json().at("constant").at("caption").as_string(), "");
}

// Captions of one word each, numbers 4 and 5 of the vocabulary.
std::unique_ptr<Score> score_of(const std::vector<int64_t>& ids) {
  const auto words =
      std::make_shared<Vocabulary>(std::vector<std::string>{"<pad>", "<start>", "<end>", "<unk>", "cat", "dog"});
  auto score = make_caption_score(
      words, 2, [](const Rows& rows, int64_t i) { return base::Json(rows.sample_ids[static_cast<size_t>(i)]); });
  for (const int64_t id : ids) {
    const int64_t length = 2;
    const auto bytes = std::as_bytes(std::span(&length, 1));
    const std::vector<FieldValues> fields{
        {{.name = "length", .element = Element::int64}, {bytes.begin(), bytes.end()}}};
    const std::vector<float> found{id % 2 == 0 ? 4.0F : 5.0F, 2}, given{-0.5F, static_cast<float>(-id)};
    const std::vector<std::string> annotations{R"({"captions": ["cat", "a cat"]})"};
    score->add({{&id, 1}, fields, {{"words", 2, found}, {"given", 2, given}}, annotations});
  }
  return score;
}

TEST(CaptionScoreTest, IsTheSameOverAnyRanks) {
  const auto whole = score_of({1, 2, 4, 5, 9}), one = score_of({5, 2, 9}), two = score_of({1, 4});
  EXPECT_NE(two->line(), whole->line());
  two->merge(one->pack());
  EXPECT_EQ(two->to_json(), whole->to_json());
  EXPECT_EQ(whole->worst(), (std::vector<int64_t>{1, 5}));  // the first of those that saw a dog
  EXPECT_EQ(whole->to_json().at("worst").items()[1].at("record").as_int(), 5);
}

}  // namespace
}  // namespace lockstep::task
