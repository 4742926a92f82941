// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/text_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

const std::vector<std::string> kSentenceClasses = {"caption", "other"};

std::vector<FieldValues> sentence_labels(const std::vector<int64_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{{.name = "label", .element = Element::int64}, {bytes.begin(), bytes.end()}}};
}

struct SentenceCase {
  std::vector<int64_t> ids, targets;
  std::vector<float> logits;  // two a row
  std::vector<std::string> annotations;
};

void add_case(Score& score, const SentenceCase& rows) {
  const auto fields = sentence_labels(rows.targets);
  score.add({rows.ids, fields, {{"logits", 2, rows.logits}}, rows.annotations});
}

const SentenceCase kFirstSentences{
    {0, 1, 2}, {0, 0, 1}, {2, 0, 0, 1, 0, 3}, {R"({"text": "a"})", R"({"text": "b"})", ""}};
const SentenceCase kSecondSentences{
    {3, 4, 5}, {1, 1, -1}, {1, 0, 0, 2, 9, 9}, {R"({"text": "d"})", "", R"({"text": "f"})"}};

// Of five sentences: caption at +2 and -1, other at -3, +1 and -2; the sixth could not be read.
TEST(TextScoreTest, FiguresAreThoseOfTheDefinitions) {
  const auto score = make_text_score(kSentenceClasses, 0, 8);
  add_case(*score, kFirstSentences);
  add_case(*score, kSecondSentences);
  EXPECT_EQ(score->samples(), 5);
  const base::Json figures = score->figures();
  EXPECT_DOUBLE_EQ(figures.at("precision").as_double(), 0.5);
  EXPECT_DOUBLE_EQ(figures.at("recall").as_double(), 0.5);
  EXPECT_DOUBLE_EQ(figures.at("f1").as_double(), 0.5);
  EXPECT_DOUBLE_EQ(figures.at("accuracy").as_double(), 0.6);
  EXPECT_DOUBLE_EQ(figures.at("average_precision").as_double(), (1 + 2.0 / 3) / 2);  // caption, other, caption
  double loss = 0, ece = 0;
  for (const double margin : {2.0, -1.0, 3.0, -1.0, 2.0}) loss += std::log1p(std::exp(-margin)) / 5;
  EXPECT_NEAR(figures.at("loss").as_double(), loss, 1e-7);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  // .881 twice in the bin to 14/15, .953 in the last, .731 twice, both wrong, in that to 11/15.
  ece = (std::abs(2 - 2 * sigmoid(2)) + std::abs(1 - sigmoid(3)) + 2 * sigmoid(1)) / 5;
  EXPECT_NEAR(figures.at("ece").as_double(), ece, 1e-9);
  EXPECT_EQ(score->headline().name, "f1");
  const base::Json all = score->to_json();
  EXPECT_EQ(all.at("constant").at("class").as_string(), "other");
  EXPECT_DOUBLE_EQ(all.at("constant").at("accuracy").as_double(), 0.6);
  EXPECT_DOUBLE_EQ(all.at("constant").at("f1").as_double(), 4.0 / 7);
  EXPECT_EQ(all.at("positive").as_string(), "caption");
}

TEST(TextScoreTest, IsTheSameWhateverTheRanksAndKeepsTheWorstSentences) {
  const auto one = make_text_score(kSentenceClasses, 0, 2), a = make_text_score(kSentenceClasses, 0, 2),
             b = make_text_score(kSentenceClasses, 0, 2), empty = make_text_score(kSentenceClasses, 0, 2);
  add_case(*one, kFirstSentences);
  add_case(*one, kSecondSentences);
  add_case(*a, kFirstSentences);
  add_case(*b, kSecondSentences);
  b->merge(empty->pack());
  b->merge(a->pack());
  EXPECT_EQ(b->to_json(), one->to_json());
  EXPECT_EQ(one->worst(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(one->to_json().at("worst").items()[0].at("text").as_string(), "b");
  EXPECT_EQ(one->to_json().at("worst").items()[1].at("text").as_string(), "d");
}

TEST(TextScoreTest, AnswersThatAreNoNumbersAreWrong) {
  const auto score = make_text_score(kSentenceClasses, 0, 2);
  add_case(*score, {{0}, {0}, {NAN, 1}, {}});
  EXPECT_FALSE(score->is_sound());
  EXPECT_EQ(score->figures().at("accuracy").as_double(), 0);
}

}  // namespace
}  // namespace lockstep::task
