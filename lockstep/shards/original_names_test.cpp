// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/original_names.h"

#include <gtest/gtest.h>

namespace lockstep::shards {
namespace {

using Names = std::map<std::string, std::string>;

TEST(OriginalNamesTest, AreFoundByTheirKeys) {
  const base::TemporaryFolder folder;
  EXPECT_EQ(read_names(folder.path(), {"00000001-b"}), Names{});  // a set of an earlier version
  base::write_file(folder.path() / kNames, name_line("00000000-a", "cat/a.jpg") + "{\"key\": \"00000001-b\", \"name\n" +
                                               name_line("00000002-b", "dog/\"b\"\n.jpg") +
                                               name_line("00000003-c", "c"));
  EXPECT_EQ(read_names(folder.path(), {"00000001-b", "00000002-b", "00000007-x"}),
            (Names{{"00000002-b", "dog/\"b\"\n.jpg"}}));
}

}  // namespace
}  // namespace lockstep::shards
