// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/submit/status.h"
#include "lockstep/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StatusTest : public testing::Test {
 protected:
  StatusTest() {
    ChainTerms terms;
    terms.name = "pets-0a1b2c";
    terms.max_links = 5;
    ChainRecord record(run());
    record.open(terms);
    record.queued("11", "");
    record.begin("11", 1, 0, "n1");
    record.queued("12", "11");
    record.finish("11", 85, 40);
    record.begin("12", 2, 40, "n2");
    record.queued("13", "12");
    queue("12|RUNNING|None|2026-11-15T17:00:00|N/A|n2\n13|PENDING|Dependency|N/A|N/A|");
  }

  const base::Path& run() const { return folder_.path(); }
  void queue(const std::string& rows) {
    slurm_.install_script("squeue", base::text("echo asked >> '", (run() / "asked").string(), "'\necho '", rows, "'"));
  }
  size_t times_asked() const { return base::split(base::read_file(run() / "asked"), '\n').size() - 1; }

  base::TemporaryFolder folder_;
  site::FakeScheduler slurm_;
};

TEST_F(StatusTest, AsksTheSchedulerOnceAMinuteAtMost) {
  const double now = base::unix_seconds();
  for (int i = 0; i < 100; ++i) status_of(run(), now + 0.5 * i);
  EXPECT_EQ(times_asked(), 1u);
  EXPECT_THAT(to_text(status_of(run(), now + 42), now + 42), HasSubstr("asked 42 s ago"));
  EXPECT_EQ(times_asked(), 1u);
  status_of(run(), now + kAskEverySeconds);
  EXPECT_EQ(times_asked(), 2u);
}

TEST_F(StatusTest, TellsLinksAndQueue) {
  const double now = base::unix_seconds();
  const std::string shown = to_text(status_of(run(), now), now);
  EXPECT_THAT(shown, HasSubstr("link 2 of at most 5, step 0 saved"));
  EXPECT_THAT(shown, HasSubstr("stopped in time"));
  EXPECT_THAT(shown, HasSubstr("job 13 PENDING (Dependency), asked 0 s ago"));
  const base::Json json = to_json(status_of(run(), now), now);
  EXPECT_EQ(json.at("links").size(), 2u);
  EXPECT_EQ(json.at("queue").at("jobs").items()[0].string_or("state", ""), "running");
}

TEST_F(StatusTest, SaysWhenTheSchedulerIsSilent) {
  slurm_.install_script("squeue", "exit 1");
  const double now = base::unix_seconds();
  const std::string shown = to_text(status_of(run(), now), now);
  EXPECT_THAT(shown, HasSubstr("slurm did not answer"));
  EXPECT_THAT(shown, HasSubstr("not known"));  // link 2 may well be running
  EXPECT_THAT(shown, testing::Not(HasSubstr("killed")));
}

TEST_F(StatusTest, CancelsTheWaitingLinksFirst) {
  slurm_.install_script("scancel", base::text("echo \"$@\" >> '", (run() / "cancelled").string(), "'"));
  EXPECT_THAT(cancel_chain(run()), ElementsAre("13", "12"));
  EXPECT_EQ(base::read_file(run() / "cancelled"), "13\n12\n");
  EXPECT_EQ(read_chain(run()).over, "cancelled");
}

}  // namespace
}  // namespace lockstep::verbs
