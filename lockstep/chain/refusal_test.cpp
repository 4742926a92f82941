// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using testing::HasSubstr;

spec::Machine cluster(const std::string& partition) {
  spec::Machine machine;
  machine.name = "site";
  machine.scheduler.kind = spec::SchedulerKind::slurm;
  machine.scheduler.partition = partition;
  return machine;
}

std::string complaint(const spec::Machine& machine, int64_t nodes, double walltime) {
  try {
    check_site(machine, nodes, walltime);
  } catch (const base::Error& error) {
    return error.message();
  }
  return "";
}

TEST(RefusalTest, NamesTheKeyThatFixesIt) {
  spec::Scheduler slurm;
  slurm.kind = spec::SchedulerKind::slurm;
  const auto error =
      refusal_error("sbatch: error: Batch job submission failed: Invalid feature specification\n", slurm);
  EXPECT_EQ(error.blame(), Blame::user);
  EXPECT_THAT(error.message(), HasSubstr("slurm refused the job: sbatch: error: Batch job submission failed"));
  EXPECT_THAT(error.fix(), HasSubstr("scheduler.constraint"));
  EXPECT_THAT(refusal_error("qsub: Unknown queue MSG=x", slurm).fix(), HasSubstr("qstat -Q"));
  EXPECT_EQ(refusal_error("it did not answer within 20 s", slurm).blame(), Blame::machine);
  EXPECT_THAT(refusal_error("the moon is wrong", slurm).fix(), HasSubstr("--dry-run"));
}

TEST(RefusalTest, NamesTheAccountsThereAre) {
  site::FakeScheduler site;
  site.install("sacctmgr", "abc123|normal|normal");
  spec::Scheduler slurm;
  slurm.kind = spec::SchedulerKind::slurm;
  const std::string words = "Invalid account or account/partition combination specified";
  EXPECT_THAT(refusal_error(words, slurm).fix(), HasSubstr("you may charge abc123"));
}

TEST(RefusalTest, SeesWhatIsWrongBeforeAnythingIsSubmitted) {
  site::FakeScheduler site;
  EXPECT_THAT(complaint(cluster(""), 1, 60), HasSubstr("sbatch is not on PATH"));
  site.install("sbatch");
  EXPECT_EQ(complaint(cluster("any"), 1, 60), "");  // no sinfo: nothing can be said
  site.install("sinfo", "main*|1-00:00:00|4|2|2000|gpu:2\ndebug|30:00|2|2|2000|(null)");
  EXPECT_EQ(complaint(cluster(""), 4, 86400), "");
  EXPECT_THAT(complaint(cluster("mian"), 1, 60), HasSubstr("did you mean 'main'"));
  EXPECT_THAT(complaint(cluster("debug"), 1, 3600), HasSubstr("lets a job run for 00:30:00, not for 01:00:00"));
  EXPECT_THAT(complaint(cluster("main"), 5, 60), HasSubstr("partition main has 4 nodes, not 5"));
}

}  // namespace
}  // namespace lockstep::chain
