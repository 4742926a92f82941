// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/command.h"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

using std::chrono::milliseconds;

TEST(CommandTest, FindsWhatTheShellWouldRun) {
  EXPECT_TRUE(find_on_path("sh").has_value());
  EXPECT_EQ(find_on_path("no-such-program-anywhere"), std::nullopt);
}

TEST(CommandTest, GivesTheOutputOfAProgram) {
  EXPECT_EQ(run_for_output({"echo", "two words"}, milliseconds(60000)), "two words\n");
}

TEST(CommandTest, GivesNothingForAFailureOrAMissingProgram) {
  EXPECT_EQ(run_for_output({"false"}, milliseconds(60000)), std::nullopt);
  EXPECT_EQ(run_for_output({"no-such-program-anywhere"}, milliseconds(60000)), std::nullopt);
}

TEST(CommandTest, TellsWhatAProgramComplainedAboutAndHowItEnded) {
  const Answer answer = ask({"sh", "-c", "echo yes; echo no >&2; exit 3"}, milliseconds(60000));
  EXPECT_EQ(answer.code, 3);
  EXPECT_EQ(answer.out, "yes\n");
  EXPECT_EQ(answer.err, "no\n");
  EXPECT_EQ(ask({"sh", "-c", "kill -9 $$"}, milliseconds(60000)).code, 128 + 9);
  EXPECT_EQ(ask({"no-such-program-anywhere"}, milliseconds(60000)).code, -1);
}

TEST(CommandTest, DoesNotWaitForAProgramThatHangs) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_for_output({"sleep", "600"}, milliseconds(50)), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace lockstep::site
