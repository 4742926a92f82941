// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/pbs_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

// Folded inside a word, a number and a path; -w is the same without folding.
TEST(PbsAnswerTest, ReadsFoldedLinesAsTheyWere) {
  const auto folded = parse_pbs(recorded_answer("qstat -f 1.n1"));
  const auto wide = parse_pbs(recorded_answer("qstat -f -w 1.n1"));
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded, wide);
  EXPECT_EQ(folded[0].name, "1.n1");
  EXPECT_EQ(folded[0].value("comment"), "Not Running: Insufficient amount of resource: ncpus (R: 72 A: 36 T: 72)");
  EXPECT_EQ(folded[0].value("Output_Path"),
            "n1:/home/user/case/logs/a_rather_long_directory_name/another_long_directory_name/wide.log");
  EXPECT_EQ(folded[0].value("no such key"), "");
}

TEST(PbsAnswerTest, ReadsQueuesServerAndNodes) {
  const auto queues = parse_pbs(recorded_answer("qstat -Qf"));
  ASSERT_EQ(queues.size(), 4u);
  EXPECT_EQ(queues[1].name, "small");
  EXPECT_EQ(queues[1].value("resources_max.walltime"), "01:00:00");
  EXPECT_EQ(queues[2].value("enabled"), "False");
  EXPECT_EQ(parse_pbs(recorded_answer("qstat -Bf")).at(0).value("default_queue"), "workq");
  const auto nodes = parse_pbs(recorded_answer("pbsnodes -av"));
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1].name, "n2");
  EXPECT_EQ(nodes[1].value("resources_available.ncpus"), "36");
}

// As Slurm's own qstat writes it, for sites that keep their PBS scripts.
TEST(PbsAnswerTest, ReadsTabsThatIndent) {
  const auto jobs = parse_pbs("Job Id:\t31\n\tJob_Name = pbs-b1a0\n\tJob_Owner = root@n1\n\tjob_state = Q\n\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].name, "31");
  EXPECT_EQ(jobs[0].value("Job_Name"), "pbs-b1a0");
  EXPECT_EQ(jobs[0].value("job_state"), "Q");
}

// A variable of a job may hold a line end: what stands behind it is no job.
TEST(PbsAnswerTest, TakesNoLineOfAValueForAName) {
  const auto jobs = parse_pbs("Job Id: 7.n1\n    Variable_List = NL=l1\nl2\n\nl3\n    job_state = Q\n\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].value("job_state"), "Q");
}

TEST(PbsAnswerTest, ReadsSizesAndTimes) {
  EXPECT_EQ(pbs_bytes("187gb"), int64_t{187} << 30);
  EXPECT_EQ(pbs_bytes("4194304kb"), int64_t{4} << 30);
  EXPECT_EQ(pbs_bytes("2048"), 2048);
  EXPECT_EQ(pbs_bytes("12q"), std::nullopt);
  EXPECT_EQ(pbs_bytes("-1gb"), std::nullopt);
  EXPECT_EQ(pbs_bytes(""), std::nullopt);
  EXPECT_EQ(*pbs_time("Mon Nov 16 14:20:11 2026") - *pbs_time("Mon Nov 16 13:20:11 2026"), 3600);
  EXPECT_EQ(pbs_time("soon"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::site
