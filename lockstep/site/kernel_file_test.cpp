// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/kernel_file.h"

#include <gtest/gtest.h>

#include "lockstep/base/file.h"

namespace lockstep::site {
namespace {

TEST(KernelFileTest, ReadsWhatIsThereAndNothingElse) {
  EXPECT_NE(kernel_text("/proc/self/status").find("Pid:"), std::string::npos);
  EXPECT_EQ(kernel_text("/proc/no-such-file"), "");
}

TEST(KernelFileTest, ListsNumberedNames) {
  const base::TemporaryFolder folder;
  for (const char* name : {"node1", "node0", "nodes", "node", "node2x"}) base::write_file(folder.path() / name, "");
  EXPECT_EQ(numbered_names(folder.path(), "node"), (std::vector<std::string>{"node0", "node1"}));
  EXPECT_TRUE(numbered_names("/no/such/folder", "node").empty());
}

}  // namespace
}  // namespace lockstep::site
