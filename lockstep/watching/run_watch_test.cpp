// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/run_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/text.h"
#include "lockstep/chain/chain.h"
#include "lockstep/run/journal.h"

namespace lockstep::watching {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

base::Json fields(const std::string& json) {
  return base::parse_json(json, "test");
}

class RunWatchTest : public testing::Test {
 protected:
  RunWatchTest() { base::make_folders(paths_.root); }
  void append(const std::string& event, const std::string& json) {
    run::Journal(paths_.journal()).append(event, fields(json));
  }

  base::TemporaryFolder temporary_;
  run::RunPaths paths_{temporary_.path() / "run"};
};

TEST_F(RunWatchTest, FollowsARunToItsEnd) {
  RunWatch watch(paths_);
  watch.poll();
  EXPECT_EQ(watch.status(), Status::not_started);
  append("start", R"({"name":"pets","total_steps":4,"steps_per_epoch":2,"model":"resnet18","ranks":1})");
  append("step", R"({"step":2,"steps":2,"epoch":1,"loss":1.5,"samples":16,"seconds":2,"compute":2,"memory":5e6})");
  append("evaluate",
         R"({"step":2,"split":"validate","seconds":1,"headline":{"name":"top1","value":0.5,"higher_is_better":true,
             "text":"top-1 50 %"}})");
  append("said", R"({"text":"epoch 1"})");
  {
    const run::RunFolder held(paths_.root);
    watch.poll();
    const Snapshot seen = watch.look(1e12);
    EXPECT_EQ(seen.status, Status::running);
    EXPECT_EQ(seen.name, "pets");
    EXPECT_EQ(seen.step, 2);
    EXPECT_DOUBLE_EQ(seen.epochs, 2);
    EXPECT_DOUBLE_EQ(seen.rate, 8);
    EXPECT_DOUBLE_EQ(seen.left, 2 * 1.5);  // two steps of a second, and half as much for evaluations
    EXPECT_DOUBLE_EQ(seen.memory, 5e6);
    EXPECT_DOUBLE_EQ(seen.best_score, 0.5);
    EXPECT_TRUE(seen.score_is_share);
    EXPECT_THAT(seen.lines, ElementsAre("epoch 1"));
    EXPECT_EQ(to_json(seen).at("score").at("best_step").as_int(), 2);
  }
  watch.poll();
  EXPECT_EQ(watch.status(), Status::broke_off);
  append("stop", R"({"step":2,"reason":"walltime"})");
  watch.poll();
  EXPECT_EQ(watch.look(0).outcome, "stopped: walltime");
  EXPECT_EQ(exit_code(watch.status()), 85);
  append("resume", R"({"name":"pets","step":2,"total_steps":4})");
  append("end", R"({"step":4})");
  watch.poll();
  EXPECT_EQ(watch.status(), Status::finished);
  EXPECT_EQ(exit_code(watch.status()), 0);
  std::filesystem::remove_all(paths_.root);
  watch.poll();
  EXPECT_EQ(watch.status(), Status::gone);
  EXPECT_EQ(exit_code(watch.status()), 3);
}

TEST_F(RunWatchTest, OfEqualScoresTheLaterIsTheBest) {
  append("start", R"({"name":"pets","total_steps":4,"steps_per_epoch":2})");
  for (const int step : {2, 4}) {
    append("evaluate", base::text(R"({"step":)", step, R"(,"split":"validate","headline":{"name":"top1","value":1,)",
                                  R"("higher_is_better":true,"text":"top-1 100 %"}})"));
  }
  RunWatch watch(paths_);
  watch.poll();
  EXPECT_EQ(watch.look(0).best_step, 4);  // whose weights eval and predict take
}

TEST_F(RunWatchTest, NamesTheDamagedLineAndShowsTheRest) {
  append("start", R"({"name":"pets"})");
  std::ofstream(paths_.journal(), std::ios::app) << "\x01\x02 not JSON\n";
  append("step", R"({"step":1,"loss":1})");
  RunWatch watch(paths_);
  watch.poll();
  EXPECT_EQ(watch.look(0).step, 1);
  ASSERT_EQ(watch.warnings().size(), 1U);
  EXPECT_THAT(watch.warnings()[0], HasSubstr("journal.jsonl: line 2 is no event"));
}

TEST_F(RunWatchTest, ADocumentThatCannotBeReadIsAWarning) {
  base::write_file(paths_.job(), "{]");
  append("start", R"({"name":"pets"})");
  RunWatch watch(paths_);
  watch.poll();
  ASSERT_EQ(watch.warnings().size(), 1U);
  EXPECT_THAT(watch.warnings()[0], HasSubstr("job.json"));
}

TEST_F(RunWatchTest, TellsTheChainOfJobsAndTheLastOnesOutput) {
  chain::ChainRecord record(paths_.root);
  chain::ChainTerms terms;
  terms.name = "pets";
  terms.planned_links = 3;
  record.open(terms);
  record.queued("41", "");
  RunWatch watch(paths_);
  watch.poll();
  EXPECT_EQ(watch.status(), Status::queued);
  record.begin("41", 1, 0, "node01");
  record.queued("42", "41");
  record.finish("41", chain::kExitNextLink, 10);
  base::write_file(paths_.root / "link-41.out", "one\ntwo\n");
  const auto chain = watch.chain();
  ASSERT_TRUE(chain);
  ASSERT_EQ(chain->links.size(), 1U);
  EXPECT_EQ(chain->links[0].state, "stopped in order");
  EXPECT_EQ(chain->waiting, 1);
  EXPECT_EQ(chain->planned_links, 3);
  EXPECT_THAT(watch.last_lines(1), ElementsAre("two"));
  EXPECT_EQ(watch.status(), Status::queued);
}

}  // namespace
}  // namespace lockstep::watching
