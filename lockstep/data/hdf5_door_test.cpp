// SPDX-License-Identifier: Apache-2.0
// What it reads of real files is judged by tests/oracles/arrays.py.
#include "lockstep/data/hdf5_door.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

TEST(Hdf5FileTest, NamesWhatIsNoHdf5File) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "notes.h5", "not at all");
  try {
    Hdf5File file(folder.path() / "notes.h5");
    FAIL();
  } catch (const base::Error& error) {
    if (error.blame() == base::Blame::machine) GTEST_SKIP() << "no HDF5 plug-in: " << error.what();
    EXPECT_NE(std::string(error.what()).find("notes.h5: no HDF5 file"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::data
