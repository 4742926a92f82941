// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/word_counts.h"

#include <gtest/gtest.h>

namespace lockstep::sources {
namespace {

FinishedSample captioned(const std::string& json) {
  FinishedSample sample;
  sample.members = {{"jpg", "x"}, {"json", json}};
  return sample;
}

TEST(WordCountsTest, CountsTheWordsOfAllCaptions) {
  WordCounts first, second;
  first.add(captioned(R"({"captions": ["A cat.", "a dog, a cat"]})"));
  first.add(captioned(R"({"objects": []})"));
  second.add(captioned(R"({"captions": ["Dogs!"]})"));
  second.add(captioned("\"captions\" {"));
  first.add(second);
  EXPECT_EQ(first.csv(), "word,count\na,3\ncat,2\ndog,1\ndogs,1\n");
  EXPECT_EQ(WordCounts::from_json(first.to_json()), first);
  EXPECT_TRUE(WordCounts().empty());
}

}  // namespace
}  // namespace lockstep::sources
