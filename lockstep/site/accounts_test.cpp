// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

using testing::ElementsAre;

TEST(AccountsTest, GathersTheQualitiesOfAProject) {
  EXPECT_THAT(parse_accounts("abc123|normal,gpu|normal\nabc123|gpu,debug|normal\nxyz|normal|\n"),
              ElementsAre(Account{"abc123", {"normal", "gpu", "debug"}, "normal"}, Account{"xyz", {"normal"}, ""}));
  EXPECT_TRUE(parse_accounts("\n").empty());
}

TEST(AccountsTest, AsksTheFairShareWhereTheDatabaseIsSilent) {
  FakeScheduler site;
  site.install_script("sacctmgr", "exit 1");
  EXPECT_TRUE(read_accounts().empty());
  site.install("sshare", "abc123");
  EXPECT_THAT(read_accounts(), ElementsAre(Account{"abc123", {}, ""}));
  site.install("sacctmgr", "def|normal|normal");
  EXPECT_THAT(read_accounts(), ElementsAre(Account{"def", {"normal"}, "normal"}));
}

}  // namespace
}  // namespace lockstep::site
