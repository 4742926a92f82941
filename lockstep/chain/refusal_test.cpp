// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/site/batch.h"
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

std::string complaint(const spec::Machine& machine, const Shape& shape) {
  const bool slurm = machine.scheduler.kind == spec::SchedulerKind::slurm;
  try {
    check_commands(machine);
    return check_site(machine, site::read_partitions(slurm ? site::SchedulerName::slurm : site::SchedulerName::pbs),
                      shape);
  } catch (const base::Error& error) {
    return error.message();
  }
}
std::string complaint(const spec::Machine& machine, int64_t nodes, double walltime) {
  return complaint(machine, Shape{.nodes = nodes, .walltime = walltime});
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

spec::Machine pbs_site(const std::string& queue, int64_t cores) {
  spec::Machine machine = cluster(queue);
  machine.scheduler.kind = spec::SchedulerKind::pbs;
  machine.cores_per_node = cores;
  return machine;
}

// PBS itself takes all of these but the first three, and lets them wait for good (tests/pbs/recorded/06).
TEST(RefusalTest, SeesWhatPbsCanNeverRun) {
  site::FakeScheduler site;
  EXPECT_THAT(complaint(pbs_site("", 36), 1, 60), HasSubstr("qsub is not on PATH"));
  site.install_recorded();
  const auto queues = site::read_partitions(site::SchedulerName::pbs);
  const auto complaint = [&](const spec::Machine& machine, const Shape& shape) {
    try {
      return check_site(machine, queues, shape);
    } catch (const base::Error& error) {
      return error.message();
    }
  };
  const auto nodes = [](int64_t count, double walltime) { return Shape{.nodes = count, .walltime = walltime}; };
  EXPECT_EQ(complaint(pbs_site("", 36), nodes(2, 86400)), "");
  EXPECT_THAT(complaint(pbs_site("wokrq", 36), nodes(1, 60)), HasSubstr("did you mean 'workq'"));
  EXPECT_THAT(complaint(pbs_site("closed", 36), nodes(1, 60)), HasSubstr("queue closed takes no jobs"));
  EXPECT_THAT(complaint(pbs_site("small", 36), nodes(1, 7200)), HasSubstr("queue small lets a job run for 01:00:00"));
  EXPECT_THAT(complaint(pbs_site("", 36), nodes(3, 60)), HasSubstr("queue workq (default) has 2 nodes, not 3"));
  EXPECT_THAT(complaint(pbs_site("", 64), nodes(1, 60)),
              HasSubstr("no node of queue workq (default) has 64 cores; the largest have 36 cores"));
  EXPECT_THAT(complaint(pbs_site("", 36), Shape{.walltime = 60, .memory = int64_t{500} << 30}),
              HasSubstr("the job would wait for good: no node"));
  EXPECT_THAT(complaint(pbs_site("", 36), Shape{.gpus = true, .walltime = 60}), HasSubstr("1 GPU;"));
  EXPECT_THAT(complaint(pbs_site("stopped", 36), nodes(1, 60)), HasSubstr("queue stopped is stopped: jobs wait there"));
  EXPECT_EQ(site.unrecorded_calls(), "");
}

TEST(RefusalTest, NamesTheKeyThatFixesWhatPbsRefused) {
  spec::Scheduler pbs;
  pbs.kind = spec::SchedulerKind::pbs;
  site::FakeScheduler site;
  const auto fix = [&](const std::string& recorded) {
    site.install_recorded({"qsub *x.sh => " + recorded});
    return refusal_error(site::submit_script(site::SchedulerName::pbs, "/x.sh", {}).refusal, pbs).fix();
  };
  EXPECT_THAT(fix("qsub -q nosuch s.sh"), HasSubstr("scheduler.partition"));
  EXPECT_THAT(fix("qsub -q closed s.sh"), HasSubstr("one that takes jobs"));
  EXPECT_THAT(fix("qsub -q small -l walltime=02:00:00 s.sh"), HasSubstr("shorter --walltime"));
  EXPECT_THAT(fix("qsub -l select=1:ncpus=1:nosuch=3 s.sh"), HasSubstr("scheduler.gpu_type"));
  EXPECT_THAT(fix("qsub -l nosuch=3 s.sh"), HasSubstr("scheduler.extra"));
  EXPECT_THAT(fix("qsub -l select=1:ncpus=1 -l mem=1gb s.sh"), HasSubstr("job_wide"));
  EXPECT_THAT(fix("12: qsub s.sh"), HasSubstr("qstat -B"));
}

}  // namespace
}  // namespace lockstep::chain
