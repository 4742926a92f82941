// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/ptb_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::task {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PtbTokensTest, LowersLettersAndDropsPunctuation) {
  EXPECT_THAT(ptb_tokens("A red fox, sitting."), ElementsAre("a", "red", "fox", "sitting"));
  EXPECT_THAT(ptb_tokens("Yes! No? \"Well\" ... so -- there; it: is"),
              ElementsAre("yes", "no", "well", "so", "there", "it", "is"));
  EXPECT_THAT(ptb_tokens("  "), IsEmpty());
  EXPECT_THAT(ptb_tokens("..."), IsEmpty());
}

TEST(PtbTokensTest, SplitsEndingsAndSigns) {
  EXPECT_THAT(ptb_tokens("It isn't the dog's"), ElementsAre("it", "is", "n't", "the", "dog", "'s"));
  EXPECT_THAT(ptb_tokens("They\xE2\x80\x99re 100% sure"), ElementsAre("they", "'re", "100", "%", "sure"));
  EXPECT_THAT(ptb_tokens("You cannot pay $5"), ElementsAre("you", "can", "not", "pay", "$", "5"));
  EXPECT_THAT(ptb_tokens("salt & pepper"), ElementsAre("salt", "&", "pepper"));
}

TEST(PtbTokensTest, ASentenceOfAnyLengthTakesItsLengthInTime) {
  std::string endings = "dog", quoted;
  for (int i = 0; i < 300000; ++i) {
    endings += "'s";
    quoted += "\xE2\x80\x9C\xC2\xA0";
  }
  const auto words = ptb_tokens(endings);
  ASSERT_EQ(words.size(), 300001U);
  EXPECT_EQ(words[0], "dog");
  EXPECT_EQ(words[300000], "'s");
  EXPECT_THAT(ptb_tokens(quoted), IsEmpty());
}

TEST(PtbTokensTest, BracketsStayAndNumbersAndHyphensHoldTogether) {
  EXPECT_THAT(ptb_tokens("A mushroom (edible)."), ElementsAre("a", "mushroom", "-lrb-", "edible", "-rrb-"));
  EXPECT_THAT(ptb_tokens("1,000 black-and-white cats,dogs"), ElementsAre("1,000", "black-and-white", "cats", "dogs"));
  EXPECT_THAT(ptb_tokens("a U.S. coin."), ElementsAre("a", "u.s.", "coin"));
}

}  // namespace
}  // namespace lockstep::task
