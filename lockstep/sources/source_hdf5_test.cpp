// SPDX-License-Identifier: Apache-2.0
// What it reads of real files is checked by tests/oracles/arrays.py.
#include "lockstep/sources/source_hdf5.h"

#include <gtest/gtest.h>

namespace lockstep::sources {
namespace {

TEST(Hdf5SourceTest, KnowsItsFilesByTheirNames) {
  const base::TemporaryFolder folder;
  for (const char* name : {"a.h5", "a.hdf5", "a.npy"}) base::write_file(folder.path() / name, "");
  EXPECT_TRUE(looks_like_hdf5({.path = folder.path() / "a.h5"}));
  EXPECT_TRUE(looks_like_hdf5({.path = folder.path() / "a.hdf5"}));
  EXPECT_FALSE(looks_like_hdf5({.path = folder.path() / "a.npy"}));
  EXPECT_FALSE(looks_like_hdf5({.path = folder.path()}));
}

}  // namespace
}  // namespace lockstep::sources
