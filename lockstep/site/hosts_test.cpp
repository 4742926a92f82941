// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/hosts.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

std::string expanded(std::string_view list) {
  return base::join(expand_host_list(list), " ");
}

TEST(HostsTest, ExpandsListsAsSlurmShortensThem) {
  EXPECT_EQ(expanded("n1"), "n1");
  EXPECT_EQ(expanded("n[1-3,7],login"), "n1 n2 n3 n7 login");
  EXPECT_EQ(expanded("nid[0008-0011]"), "nid0008 nid0009 nid0010 nid0011");
  EXPECT_EQ(expanded("r[1-2]n[1-2]-ib"), "r1n1-ib r1n2-ib r2n1-ib r2n2-ib");
  EXPECT_EQ(expanded(""), "");
}

TEST(HostsTest, ALineThatIsNoListIsRefused) {
  for (const char* list : {"n[1-", "n[3-1]", "n[]", "n[a-b]", "n]1[", "n[[1]]", "n[1-9999999999]"}) {
    EXPECT_THROW(expand_host_list(list), base::Error) << list;
  }
}

TEST(HostsTest, AnAllocationOfSlurmAndOneOfPbsNameTheirHosts) {
  Scheduler slurm;
  slurm.name = SchedulerName::slurm;
  slurm.job_id = "7";
  slurm.node_list = "n[1-2]";
  EXPECT_EQ(allocated_hosts(slurm), (std::vector<std::string>{"n1", "n2"}));
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "nodes", "a.site\na.site\nb.site\n");
  Scheduler pbs;
  pbs.name = SchedulerName::pbs;
  pbs.job_id = "7.server";
  pbs.node_list = (folder.path() / "nodes").string();
  EXPECT_EQ(allocated_hosts(pbs), (std::vector<std::string>{"a.site", "b.site"}));
  slurm.job_id.clear();
  EXPECT_TRUE(allocated_hosts(slurm).empty());
}

TEST(HostsTest, RanksAreSharedInBlocksThatDifferByOne) {
  EXPECT_EQ(share_ranks(5, {"a", "b"}), (std::vector<Share>{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(share_ranks(2, {"a", "b", "c"}), (std::vector<Share>{{"a", 1}, {"b", 1}}));
}

}  // namespace
}  // namespace lockstep::site
