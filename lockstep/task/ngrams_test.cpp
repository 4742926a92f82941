// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/ngrams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace lockstep::task {
namespace {

spec::Text words_alone(int64_t longest = 2) {
  spec::Text how;
  how.words = longest;
  how.longest = 0;
  return how;
}

TEST(NgramsTest, AreWordsAndWhatEndsWithThem) {
  const auto all = hashed_ngrams("A red disk.", words_alone());
  ASSERT_EQ(all.size(), 5U);  // a, red, a red, disk, red disk
  EXPECT_EQ(hashed_ngrams("a RED disk", words_alone()), all);
  EXPECT_EQ(hashed_ngrams("red", words_alone())[0], all[1]);
  EXPECT_EQ(hashed_ngrams("big red disk", words_alone())[4], all[4]);
  EXPECT_EQ(hashed_ngrams("a red disk", words_alone(3)).size(), 6U);
  EXPECT_TRUE(hashed_ngrams(" ... ", words_alone()).empty());
}

TEST(NgramsTest, AreCharactersWithinAWord) {
  spec::Text how;
  how.words = 1;
  how.shortest = 3;
  how.longest = 4;
  EXPECT_EQ(hashed_ngrams("cat", how).size(), 1U + 3 + 2);        // cat; <ca cat at>; <cat cat>
  EXPECT_EQ(hashed_ngrams("\xc3\xa9t\xc3\xa9", how).size(), 6U);  // two bytes a letter
  EXPECT_EQ(hashed_ngrams("a", how).size(), 2U);                  // a; <a>
  const auto cat = hashed_ngrams("cat", how);
  EXPECT_EQ(std::set(cat.begin(), cat.end()).size(), cat.size());  // the word "cat" is not the letters "cat"
}

TEST(NgramsTest, FillTheBuckets) {
  spec::Text how;
  how.buckets = 16;
  std::set<int64_t> seen;
  for (char c = 'a'; c <= 'z'; ++c) {
    for (const int64_t ngram : hashed_ngrams(std::string(4, c), how)) seen.insert(ngram);
  }
  EXPECT_EQ(*seen.begin(), 1);
  EXPECT_EQ(*seen.rbegin(), 16);
  EXPECT_EQ(seen.size(), 16U);
}

}  // namespace
}  // namespace lockstep::task
