// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(VocabularyTest, HasTheWordsThatAreFrequentEnough) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / kWordCounts, "word,count\na,9\n1,000,5\ncat,5\ndog,4\n");
  EXPECT_THAT(read_vocabulary(folder.path(), 5),
              ElementsAre("<pad>", "<start>", "<end>", "<unk>", "a", "1,000", "cat"));
}

TEST(VocabularyTest, NamesWhatIsMissing) {
  const base::TemporaryFolder folder;
  const auto message = [&] {
    try {
      read_vocabulary(folder.path(), 5);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(), HasSubstr("no words were counted"));
  base::write_file(folder.path() / kWordCounts, "word,count\na,4\n");
  EXPECT_THAT(message(), HasSubstr("stands 5 times"));
  base::write_file(folder.path() / kWordCounts, "word,count\nnonsense\n");
  EXPECT_THAT(message(), HasSubstr("words.csv:2"));
}

TEST(VocabularyTest, FindsTheWordsThatItDoesNotHave) {
  const base::TemporaryFolder folder;
  const std::vector<std::string> words{"<pad>", "<start>", "<end>", "<unk>", "a", "cat"};
  EXPECT_TRUE(is_vocabulary(words));
  EXPECT_FALSE(is_vocabulary({"a", "cat"}));
  EXPECT_FALSE(is_vocabulary({}));
  EXPECT_EQ(find_unknown_words(folder.path(), words), UnknownWords());
  base::write_file(folder.path() / kWordCounts, "word,count\na,9\nzebra,4\ncat,2\nyak,1\n");
  EXPECT_EQ(find_unknown_words(folder.path(), words), (UnknownWords{16, 5, {"zebra", "yak"}}));
}

TEST(VocabularyTest, WritesACaptionWithItsEndAndReadsItBack) {
  const Vocabulary words({"<pad>", "<start>", "<end>", "<unk>", "a", "cat"});
  std::vector<int64_t> row(4);
  EXPECT_EQ(words.encode({"a", "cat"}, row), 3);
  EXPECT_THAT(row, ElementsAre(4, 5, kEndWord, kPadWord));
  EXPECT_EQ(words.encode({"a", "fat", "cat", "sat"}, row), 4);  // cut, and an unknown word
  EXPECT_THAT(row, ElementsAre(4, kUnknownWord, 5, kEndWord));
  EXPECT_THAT(words.decode(std::vector<float>{4, 5, 2, 5}), ElementsAre("a", "cat"));
}

}  // namespace
}  // namespace lockstep::task
