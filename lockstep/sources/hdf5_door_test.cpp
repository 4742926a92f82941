// SPDX-License-Identifier: Apache-2.0
// What it reads of real files is checked by tests/oracles/arrays.py.
#include "lockstep/sources/hdf5_door.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

TEST(Hdf5FileTest, NamesWhatIsNoHdf5File) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "notes.h5", "not at all");
  try {
    Hdf5File file(folder.path() / "notes.h5");
    FAIL();
  } catch (const base::Error& error) {
    const bool without_plugin = error.blame() == base::Blame::machine;  // a build without libhdf5 says that instead
    const char* expected = without_plugin ? "cannot open the HDF5 plug-in" : "notes.h5: no HDF5 file, or a damaged one";
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    EXPECT_FALSE(error.fix().empty());
  }
}

}  // namespace
}  // namespace lockstep::sources
