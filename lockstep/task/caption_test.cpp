// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

struct CaptionRows {
  std::vector<int64_t> ids;
  std::vector<FieldValues> fields;
  std::vector<float> words, logs, attention, given;
  std::vector<std::string> annotations;

  // A 16 x 32 image has two places.
  void add(int64_t id, const std::vector<float>& made, const std::string& reference) {
    if (fields.empty()) fields.push_back({{.name = "length", .element = Element::int64}});
    ids.push_back(id);
    const int64_t length = 3;
    const auto bytes = std::as_bytes(std::span(&length, 1));
    fields[0].bytes.insert(fields[0].bytes.end(), bytes.begin(), bytes.end());
    words.insert(words.end(), made.begin(), made.end());
    for (int i = 0; i < 3; ++i) {
      logs.push_back(std::log(0.5F));
      given.push_back(std::log(0.25F));
      attention.push_back(0.2F);
      attention.push_back(0.8F);
    }
    annotations.push_back(R"({"width": 8, "height": 8, "captions": [")" + reference + R"("]})");
  }
  Rows rows() const {
    return {ids,
            fields,
            {{"words", 3, words}, {"log_probabilities", 3, logs}, {"attention", 6, attention}, {"given", 3, given}},
            annotations};
  }
};

std::unique_ptr<Task> captions() {
  spec::Job job;
  job.task = spec::Task::caption;
  job.data.image_size = {16, 32};
  job.caption.length = 3;
  return make_caption(job, {"<pad>", "<start>", "<end>", "<unk>", "a", "cat", "dog"});
}

TEST(CaptionTest, ScoresTheSameWhateverTheRanks) {
  CaptionRows first, second, both;
  for (CaptionRows* to : {&first, &both}) to->add(4, {4, 5, 2}, "a cat");
  for (CaptionRows* to : {&second, &both}) to->add(2, {4, 6, 2}, "a cat");
  const auto task = captions();
  const auto one = task->score(5), two = task->score(5), whole = task->score(5);
  one->add(first.rows());
  two->add(second.rows());
  whole->add(both.rows());
  one->merge(two->pack());
  EXPECT_EQ(one->to_json(), whole->to_json());
  EXPECT_EQ(whole->samples(), 2);
  EXPECT_NEAR(whole->figures().at("loss").as_double(), -std::log(0.25), 1e-6);
  EXPECT_EQ(whole->worst().front(), 2);
  EXPECT_EQ(whole->to_json().at("constant").at("caption").as_string(), "a cat");
  EXPECT_NEAR(whole->to_json().at("constant").at("bleu1").as_double(), 1, 1e-6);
}

TEST(CaptionTest, ARecordTellsEachWordAndWhereWasLookedForIt) {
  CaptionRows rows;
  rows.add(0, {4, 5, 2}, "a cat");
  const auto task = captions();
  const base::Json record = task->record(rows.rows(), 0, 0);
  EXPECT_EQ(record.at("caption").as_string(), "a cat");
  EXPECT_EQ(record.at("words").items()[1].at("word").as_string(), "cat");
  EXPECT_EQ(record.at("words").items()[0].at("attention").as_string(), "Fz");
  EXPECT_EQ(record.at("words").items()[0].at("probability").as_double(), 0.5);
  EXPECT_EQ(task->line(record), "a cat  (0.50 a word)");
  image::Image image(40, 20);
  for (auto& value : image.pixels) value = 200;
  EXPECT_TRUE(task->draw(record, image));
  EXPECT_GT(image.width, 3 * 160);  // the image and two words
}

}  // namespace
}  // namespace lockstep::task
