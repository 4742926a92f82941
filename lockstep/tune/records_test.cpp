// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/records.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

TEST(RecordsTest, AnEnqueuedTrialKeepsTheValuesThatItNames) {
  const base::TemporaryFolder folder;
  const base::Path path = folder.path() / "study.log";
  const Space space =
      make_space(spec::parse_study(base::parse_json(
                     R"({"space": {"x": {"range": [0, 1]}, "o": {"choice": ["p", "q"]}}})", "study.json")),
                 nullptr);
  StudyFile file(path, "s", "w");
  file.make_study(false);
  file.update([&](StudyFile::Update& update) {
    update.add(4, R"("study_id":0,"datetime_start":null,"state":4,"system_attrs":{"fixed_params":{"o":"q"}})");
    record_claim(update, 0, space, {{"x", 0.5}, {"o", 0}});
    record_attr(update, 0, Attr::user, "note", "a \"word\"");
    record_end(update, 0, TrialState::complete, 2);
  });
  const StudyFile again(path, "s", "reader");
  const Trial& trial = again.trials().all().at(0);
  EXPECT_EQ(trial.values, (Values{{"o", 1}, {"x", 0.5}}));
  EXPECT_EQ(trial.state, TrialState::complete);
  EXPECT_EQ(trial.objective, 2);
  EXPECT_EQ(trial.user_attrs.at("note").as_string(), "a \"word\"");
  EXPECT_EQ(trial.system_attrs.at(kWorkerAttr).as_string(), "w");
}

TEST(RecordsTest, APausedTrialRunsForOptunaUntilItIsPruned) {
  const base::TemporaryFolder folder;
  StudyFile file(folder.path() / "study.log", "s", "w");
  file.make_study(false);
  file.update([&](StudyFile::Update& update) {
    const Trial& trial = (record_new(update, {}, {}), update.trials().by_id(0));
    record_pause(update, 0);
    EXPECT_TRUE(trial.is_paused());
    EXPECT_EQ(trial.worker(), "w");
    record_release(update, 0);
    EXPECT_TRUE(trial.is_paused());
    EXPECT_EQ(trial.worker(), "");
    EXPECT_EQ(trial.state, TrialState::running);
    record_promotion(update, 0);
    EXPECT_FALSE(trial.is_paused());
    EXPECT_EQ(trial.worker(), "w");
    record_pause(update, 0);
    record_end(update, 0, TrialState::pruned, 0.5);
    EXPECT_FALSE(trial.is_paused());
    EXPECT_EQ(trial.objective, 0.5);
  });
}

}  // namespace
}  // namespace lockstep::tune
