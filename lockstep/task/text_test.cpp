// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/task/ngrams.h"

namespace lockstep::task {
namespace {

using testing::HasSubstr;

spec::Job sentence_job(int64_t slots = 8) {
  spec::Job job;
  job.task = spec::Task::text;
  job.text.longest = 0;
  job.text.slots = slots;
  return job;
}

struct EncodedSentence {
  std::vector<int64_t> tokens, label = {7};
  std::string annotation;
};

EncodedSentence encode_sentence(const spec::Job& job, const std::string& sentence) {
  const auto encoder = make_text(job, {"caption", "other"})->encoder();
  EncodedSentence all;
  all.tokens.resize(static_cast<size_t>(job.text.slots), 99);
  std::vector<std::byte*> out{reinterpret_cast<std::byte*>(all.tokens.data()),
                              reinterpret_cast<std::byte*>(all.label.data())};
  encoder->encode({1, std::as_bytes(std::span(sentence)), {}}, std::nullopt, out);
  all.annotation = encoder->annotation();
  return all;
}

TEST(TextTest, ASentenceFillsItsSlotsAndTheRestStaysEmpty) {
  const spec::Job job = sentence_job();
  auto expected = hashed_ngrams("a red disk", job.text);
  ASSERT_EQ(expected.size(), 5U);
  expected.resize(8, kNoNgram);
  const EncodedSentence all = encode_sentence(job, " A red disk.\n");
  EXPECT_EQ(all.tokens, expected);
  EXPECT_EQ(all.label, std::vector<int64_t>{1});
  EXPECT_EQ(all.annotation, R"({"text":"A red disk."})");
  expected.resize(2);
  EXPECT_EQ(encode_sentence(sentence_job(2), "a red disk").tokens, expected);
}

TEST(TextTest, WhatIsNoSentenceIsNamed) {
  const auto complaint = [](const std::string& sentence) -> std::string {
    try {
      encode_sentence(sentence_job(), sentence);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(complaint(" ... "), HasSubstr("the sentence is empty"));
  EXPECT_THAT(complaint(""), HasSubstr("the sentence is empty"));
  EXPECT_THAT(complaint("caf\xe9 au lait"), HasSubstr("byte 4 of the sentence is no UTF-8"));
}

TEST(TextTest, TheClassThatIsLookedForIsCaptionOrTheLast) {
  const auto positive = [](const std::string& name, const std::vector<std::string>& classes) {
    spec::Job job = sentence_job();
    job.text.positive = name;
    return make_text(job, classes)->report_words().at("title").as_string();
  };
  EXPECT_EQ(positive("", {"caption", "other"}), "F1 of caption");
  EXPECT_EQ(positive("", {"0", "1"}), "F1 of 1");
  EXPECT_EQ(positive("other", {"caption", "other"}), "F1 of other");
  try {
    positive("captoin", {"caption", "other"});
    FAIL() << "there is no such class";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("text.positive: the data have no class 'captoin'"));
    EXPECT_THAT(error.fix(), HasSubstr("caption"));
  }
}

TEST(TextTest, ARecordHasTheSentenceAndItsClasses) {
  const auto task = make_text(sentence_job(), {"caption", "other"});
  const std::vector<int64_t> ids{4};
  const std::vector<FieldValues> fields;
  const std::vector<float> shares{0.25F, 0.75F};
  const std::vector<std::string> annotations{R"({"text": "the price rose"})"};
  const base::Json record = task->record({ids, fields, {{"probabilities", 2, shares}}, annotations}, 0, 5);
  EXPECT_EQ(record.at("text").as_string(), "the price rose");
  EXPECT_EQ(record.at("label").as_string(), "other");
  EXPECT_EQ(record.at("probability").as_double(), 0.25);
  EXPECT_EQ(record.at("classes").items().size(), 2U);
  EXPECT_EQ(task->line(record), "other 75.0 %  the price rose");
  EXPECT_EQ(task->columns(0).size(), task->cells(record, 0).size());
}

}  // namespace
}  // namespace lockstep::task
