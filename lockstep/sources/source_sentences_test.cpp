// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::HasSubstr;

class SourceSentencesTest : public testing::Test {
 protected:
  SourceOptions list(const std::string& name, const std::string& content) const {
    base::write_file(folder_.path() / name, content);
    return {.path = folder_.path() / name};
  }
  static std::string complaint(const SourceOptions& options) {
    try {
      open_source(options);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  }
  base::TemporaryFolder folder_;
};

TEST_F(SourceSentencesTest, ATableOfSentencesAndLabels) {
  const auto opened = open_source(list("a.csv",
                                       "sentence,label,split\n\"A disk, then a star\",caption,train\n"
                                       "The price rose.,other,train\nwho sold it?,other,val\n"));
  EXPECT_EQ(opened.format, "sentences");
  const Source& source = *opened.source;
  EXPECT_EQ(source.classes(), (std::vector<std::string>{"caption", "other"}));
  ASSERT_EQ(source.samples().size(), 3U);
  EXPECT_EQ(source.samples()[0].label, 0);
  EXPECT_EQ(source.samples()[2].part, Part::validate);
  EXPECT_THAT(source.samples()[2].name, HasSubstr("a.csv:4"));
  EXPECT_EQ(source.load(0), (std::vector<SourceMember>{{"txt", "A disk, then a star"}}));
}

TEST_F(SourceSentencesTest, JsonLinesAndTabs) {
  const auto lines =
      open_source(list("a.jsonl", "{\"text\": \"a disk\", \"label\": 1}\n{\"text\": \"no\", \"label\": 0}\n"));
  EXPECT_EQ(lines.format, "sentences");
  EXPECT_EQ(lines.source->classes(), (std::vector<std::string>{"0", "1"}));
  const auto tabs = open_source(list("a.tsv", "label\ttext\ncaption\ta disk, a star\nother\tno\n"));
  EXPECT_EQ(tabs.format, "sentences");
  EXPECT_EQ(tabs.source->load(0).front().bytes, "a disk, a star");
}

TEST_F(SourceSentencesTest, JsonMayNameItsKeys) {
  SourceOptions options =
      list("a.jsonl",
           "{\"text\": \"x1\", \"said\": \"a disk\", \"label\": 1, \"fold\": \"test\", \"split\": \"train\"}\n"
           "{\"text\": \"x2\", \"said\": \"no\", \"label\": 0, \"fold\": \"train\"}\n"
           "{\"text\": \"x3\", \"said\": \"a star\", \"label\": 1, \"fold\": \"train\"}\n");
  options.path_column = "said";
  options.part_column = "fold";
  const auto opened = open_source(options);
  ASSERT_EQ(opened.source->samples().size(), 3U);
  EXPECT_EQ(opened.source->samples()[0].part, Part::test);
  EXPECT_EQ(opened.source->samples()[1].part, Part::train);
  EXPECT_EQ(opened.source->load(0).front().bytes, "a disk");
  options.part_column = "none";
  EXPECT_EQ(open_source(options).source->samples()[0].part, Part::open);
  options.part_column = "flod";
  EXPECT_THAT(complaint(options), HasSubstr("a.jsonl:1: no part stands under 'flod'"));
}

TEST_F(SourceSentencesTest, WhatHasImagesIsLeftToOthers) {
  EXPECT_FALSE(looks_like_sentences(list("a.csv", "image,caption,label\na.jpg,a disk,x\n")));
  EXPECT_FALSE(looks_like_sentences(list("b.csv", "sentence,author\na disk,x\n")));
  EXPECT_FALSE(
      looks_like_sentences(list("a.jsonl", "{\"image\": \"a.jpg\", \"caption\": \"a disk\", \"label\": 1}\n")));
}

TEST_F(SourceSentencesTest, WhatCannotBeLearntIsNamedAndLeftOut) {
  const auto opened =
      open_source(list("a.csv",
                       "sentence,label,split\na disk,caption,train\n ...,caption,train\nno,other,train\n"
                       "what?,,train\nA DISK!,caption,validate\nno.,caption,train\nmaybe,othr,validate\n"));
  const Source& source = *opened.source;
  EXPECT_EQ(source.samples().size(), 2U);
  std::vector<std::string> reasons;
  for (const auto& one : source.refused()) reasons.push_back(one.reason);
  ASSERT_EQ(reasons.size(), 5U);
  EXPECT_THAT(reasons[0], HasSubstr("the sentence is empty"));
  EXPECT_THAT(reasons[1], HasSubstr("it has no label"));
  EXPECT_THAT(reasons[2],
              testing::AllOf(HasSubstr("the same words as"), HasSubstr("a.csv:2"), HasSubstr("part train")));
  EXPECT_THAT(reasons[3], HasSubstr("which has the label 'other'"));
  EXPECT_THAT(reasons[4], HasSubstr("no training sentence has its label, \"othr\""));
  ASSERT_FALSE(source.notes().empty());
  EXPECT_THAT(source.notes().back(),
              HasSubstr("2 sentences say the same words as an earlier one and are left out: 1 in "
                        "another part (leakage), 1 with another label"));
}

TEST_F(SourceSentencesTest, ManyLabelsOfOneSentenceAreToldInOne) {
  std::string rows = "sentence,label\n";
  for (int i = 0; i < 30; ++i) rows += "words " + std::to_string(i) + ",free text " + std::to_string(i) + "\n";
  const auto opened = open_source(list("a.csv", rows));
  ASSERT_EQ(opened.source->notes().size(), 1U);
  EXPECT_THAT(opened.source->notes()[0], HasSubstr("30 of 30 labels stand at one sentence alone"));
}

TEST_F(SourceSentencesTest, ListsThatAreNoneAreNamed) {
  EXPECT_THAT(complaint(list("a.csv", "sentence,label\na disk,caption\na star,caption\n")),
              HasSubstr("every training sentence has the label 'caption'"));
  EXPECT_THAT(complaint(list("b.csv", "sentence,label\ncaf\xe9,caption\na star,other\n")), HasSubstr("no UTF-8"));
  EXPECT_THAT(complaint(list("c.csv", "sentence,label\na disk, a star,caption\nno,other\n")),
              HasSubstr("c.csv:2: 3 columns, the first row has 2"));
  EXPECT_THAT(complaint(list("d.csv", "sentence,label,split\na disk,caption,training\nno,other,later\n")),
              HasSubstr("\"later\" is no part of a dataset"));
}

TEST_F(SourceSentencesTest, ListsForPredictionNeedNoLabel) {
  const auto texts = [](const SourceOptions& options) {
    std::vector<std::string> all;
    for (const auto& one : list_sentences(options.path)) all.push_back(one.text);
    return all;
  };
  EXPECT_EQ(texts(list("a.txt", "a disk\r\n\nno\n")), (std::vector<std::string>{"a disk", "", "no"}));
  EXPECT_EQ(texts(list("a.csv", "id,text\n1,\"a disk, a star\"\n2,no\n")),
            (std::vector<std::string>{"a disk, a star", "no"}));
  EXPECT_EQ(texts(list("b.csv", "sentence\na \"red\" disk\n\"so \"\"red\"\", it is\"\n")),
            (std::vector<std::string>{"a \"red\" disk", "so \"red\", it is"}));
  EXPECT_EQ(texts(list("a.jsonl", "{\"text\": \"a disk\"}\n")), (std::vector<std::string>{"a disk"}));
  EXPECT_THAT(list_sentences(list("a.txt", "x\ny\n").path)[1].place, HasSubstr("a.txt:2"));
  EXPECT_THROW(list_sentences(folder_.path() / "none.txt"), base::Error);
  EXPECT_THROW(list_sentences(list("a.doc", "x\n").path), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
