// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/software.h"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

TEST(SoftwareTest, ReadsHowEachMpiNamesItself) {
  EXPECT_EQ(parse_mpi_version("mpirun (Open MPI) 4.1.4\n\nReport bugs to\n"), "Open MPI 4.1.4");
  EXPECT_EQ(parse_mpi_version("HYDRA build details:\n    Version: 4.0.2\n"), "HYDRA build details:");
  EXPECT_EQ(parse_mpi_version(""), "");
}

TEST(SoftwareTest, ReadsTheNameOfTheSystem) {
  EXPECT_EQ(parse_os_release("NAME=\"X\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_os_release("ID=x\n"), "");
}

TEST(SoftwareTest, FindsItsOwnLibraryAndHost) {
  EXPECT_TRUE(std::filesystem::exists(library_folder() / "liblockstep_core.so")) << library_folder();
  EXPECT_FALSE(read_software().host.empty());
}

}  // namespace
}  // namespace lockstep::site
