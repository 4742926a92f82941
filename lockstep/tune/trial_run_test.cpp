// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/trial_run.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

TrialEnd wait_for_end(TrialRun& run) {
  while (!run.poll()) wait_for({&run.child()}, 0.05);
  return run.end();
}

TEST(TrialRunTest, AProgramsLastNumberIsItsValue) {
  const auto run = start_program({"sh", "-c", "echo hello; echo 3; echo ' 2.5 '; echo bye"}, {}, true);
  const TrialEnd end = wait_for_end(*run);
  EXPECT_EQ(end.how, TrialEnd::How::complete);
  EXPECT_EQ(end.value, 2.5);
  EXPECT_EQ(run->take_reports(), (std::vector<std::pair<int64_t, double>>{{1, 3}, {2, 2.5}}));
  EXPECT_EQ(wait_for_end(*start_program({"echo", "nan"}, {}, false)).how, TrialEnd::How::refused);
  EXPECT_EQ(wait_for_end(*start_program({"false"}, {}, false)).how, TrialEnd::How::crashed);
}

TEST(TrialRunTest, ATrainingsValueIsItsBestEvaluation) {
  const base::TemporaryFolder folder;
  const base::Path run = folder.path() / "run";
  const std::string script = base::text(
      "mkdir ", run.string(), "; printf '",
      R"({"v":1,"t":1,"event":"evaluate","step":4,"epoch":1,"split":"validate","loss":2,"headline":{"value":0.5}}\n)",
      R"({"v":1,"t":1,"event":"evaluate","step":8,"epoch":2,"split":"validate","loss":1,"headline":{"value":0.75}}\n)",
      R"({"v":1,"t":1,"event":"evaluate","step":12,"epoch":3,"split":"validate","loss":3,"headline":{"value":0.7}}\n)",
      R"({"v":1,"t":1,"event":"eval' > )", (run / "journal.jsonl").string());
  const auto started =
      start_job({{"sh", "-c", script}, run, "headline", true, 1}, {.output = (folder.path() / "out").string()});
  const TrialEnd end = wait_for_end(*started);
  EXPECT_EQ(end.value, 0.75);
  EXPECT_EQ(started->take_reports(), (std::vector<std::pair<int64_t, double>>{{2, 0.75}, {3, 0.7}}));
}

TEST(TrialRunTest, NamesTheFiguresThatThereAre) {
  const auto event = base::parse_json(R"({"v":1,"t":1,"top1":0.5,"loss":null,"headline":{"value":0.5}})", "journal");
  EXPECT_EQ(objective_of(event, "top1"), 0.5);
  EXPECT_TRUE(std::isnan(objective_of(event, "loss")));
  try {
    objective_of(event, "top2");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(error.fix().find("top1"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::tune
