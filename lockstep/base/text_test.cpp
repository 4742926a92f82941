// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/text.h"

#include <gtest/gtest.h>

namespace lockstep::base {
namespace {

TEST(TextTest, StreamsItsParts) {
  EXPECT_EQ(text("a", 1, '-', 2.5), "a1-2.5");
}

TEST(TextTest, SplitsAndJoins) {
  EXPECT_EQ(split("a,b,,c", ','), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(trim("  a b \n"), "a b");
}

TEST(TextTest, FindsTheNearestName) {
  const std::vector<std::string> names{"global_batch", "micro_batch", "epochs"};
  EXPECT_EQ(nearest("global_bach", names).front(), "global_batch");
  EXPECT_TRUE(nearest("zzzzzz", names).empty());
  EXPECT_EQ(nearest("training.global_bach", {"training.ghost_batch", "training.global_batch"}),
            std::vector<std::string>{"training.global_batch"});
  EXPECT_EQ(did_you_mean("epoch", names), "did you mean 'epochs'?");
  EXPECT_EQ(did_you_mean("zzzzzz", names), "known: global_batch, micro_batch, epochs");
}

TEST(TextTest, TellsUtf8FromOtherBytes) {
  EXPECT_TRUE(is_utf8("caf\xC3\xA9"));
  EXPECT_FALSE(is_utf8("caf\xE9"));
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // beyond U+10FFFF
  EXPECT_FALSE(is_utf8("\xE2\x82"));          // cut short
}

}  // namespace
}  // namespace lockstep::base
