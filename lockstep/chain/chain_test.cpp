// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::chain {
namespace {

using testing::ElementsAre;

ChainTerms terms() {
  ChainTerms terms;
  terms.name = "pets-0a1b2c";
  terms.submit_from = spec::SubmitFrom::login;
  terms.walltime = 3600;
  terms.planned_links = 3;
  terms.max_links = 8;
  terms.patience = 2;
  terms.promised_end = 1000.5;
  return terms;
}

TEST(ChainTest, IsReadBackAsItWasWritten) {
  const base::TemporaryFolder folder;
  EXPECT_FALSE(has_chain(folder.path()));
  EXPECT_THROW(read_chain(folder.path()), base::Error);
  ChainRecord record(folder.path());
  record.open(terms());
  record.queued("11", "");
  record.begin("11", 1, 0, "n1");
  record.queued("12", "11");
  record.finish("11", 85, 40);
  record.begin("12", 2, 40, "n2");
  const Chain chain = read_chain(folder.path());
  EXPECT_EQ(chain.terms, terms());
  EXPECT_THAT(chain.queued, ElementsAre("11", "12"));
  ASSERT_EQ(chain.links.size(), 2u);
  EXPECT_EQ(chain.links[0].code, 85);
  EXPECT_EQ(chain.links[0].step_after, 40);
  EXPECT_EQ(chain.links[1].host, "n2");
  EXPECT_EQ(chain.links[1].ended, 0);
  EXPECT_EQ(chain.over, "");
  record.close("done", 90, chain.terms);
  EXPECT_EQ(read_chain(folder.path()).over, "done");
  record.open(terms());  // submitted again: a chain of its own
  EXPECT_EQ(read_chain(folder.path()).over, "");
  EXPECT_TRUE(read_chain(folder.path()).links.empty());
}

TEST(ChainTest, NotesHowLateAPromisedEndWas) {
  const base::TemporaryFolder folder;
  ChainRecord record(folder.path());
  record.open(terms());
  record.close("done", 90, terms());
  const auto history = run::read_journal(chain_file(folder.path()));
  EXPECT_EQ(history.events.back().at("promised_end").as_double(), 1000.5);
  EXPECT_GT(history.events.back().at("late_seconds").as_double(), 1e9);  // 1970 is long ago
}

TEST(ChainTest, KnowsAJobThatTheSchedulerStartedAgain) {
  const base::TemporaryFolder folder;
  ChainRecord record(folder.path());
  record.open(terms());
  record.begin("11", 1, 0, "n1");
  record.begin("11", 1, 10, "n3");
  const Chain chain = read_chain(folder.path());
  ASSERT_EQ(chain.links.size(), 1u);
  EXPECT_EQ(chain.links[0].starts, 2);
  EXPECT_EQ(chain.links[0].host, "n3");
  EXPECT_EQ(chain.links[0].step_before, 0);
}

TEST(ChainTest, CountsTheLinksThatBroughtNothing) {
  Chain chain;
  const auto link = [&](const char* job, int64_t step_before) {
    ChainLink& added = chain.links.emplace_back();
    added.job = job;
    added.step_before = step_before;
  };
  EXPECT_EQ(chain.idle_links(0), 0);
  link("1", 0);
  EXPECT_EQ(chain.idle_links(40), 0);  // the first brought 40
  link("2", 40);
  EXPECT_EQ(chain.idle_links(40), 1);
  link("3", 40);
  EXPECT_EQ(chain.idle_links(40), 2);
  EXPECT_EQ(chain.idle_links(41), 0);
}

TEST(ChainTest, FindsTheLastSavedStepOfAJournal) {
  const base::TemporaryFolder folder;
  EXPECT_EQ(saved_step(folder.path()), 0);
  const base::Path journal = folder.path() / "journal.jsonl";
  const std::string begun = R"({"v":1,"t":1.0,"event":"save","step":10,"seconds":0.1})";
  base::write_file(journal, begun + "\n" + R"({"v":1,"t":2.0,"event":"step","step":12})" + "\n");
  EXPECT_EQ(saved_step(folder.path()), 10);
  // A torn last line does not count, neither does the word in another event.
  base::write_file(journal, begun + "\n" + R"({"v":1,"t":3.0,"event":"note","why":"\"event\":\"save\""})" + "\n" +
                                R"({"v":1,"t":4.0,"event":"save","step":2)");
  EXPECT_EQ(saved_step(folder.path()), 10);
}

TEST(ChainTest, CountsACheckpointThatAKilledJobDidNotTellOf) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "journal.jsonl", R"({"v":1,"t":1.0,"event":"save","step":10})"
                                                    "\n");
  base::make_folders(folder.path() / "checkpoints/step-00000010");
  base::make_folders(folder.path() / "checkpoints/.saving-step-00000014");
  EXPECT_EQ(saved_step(folder.path()), 10);
  base::make_folders(folder.path() / "checkpoints/step-00000012");
  EXPECT_EQ(saved_step(folder.path()), 12);
}

}  // namespace
}  // namespace lockstep::chain
