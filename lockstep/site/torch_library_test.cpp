// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/torch_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::site {
namespace {

using testing::HasSubstr;

// A folder as pip makes it.
class TorchLibraryTest : public testing::Test {
 protected:
  base::Path install(const std::string& version_line) {
    base::make_folders(folder_.path() / "torch/lib");
    base::write_file(folder_.path() / "torch/version.py",
                     "from typing import Optional\n\n" + version_line + "\ncuda = '13.0'\n");
    return folder_.path() / "torch/lib/libtorch_cpu.so";  // need not be there to be asked for its version
  }
  base::TemporaryFolder folder_;
};

TEST_F(TorchLibraryTest, ReadsTheVersionBesideTheLibrary) {
  EXPECT_EQ(torch_version(install("__version__ = '2.11.0+cu130'")), "2.11.0+cu130");
  EXPECT_EQ(torch_version(install("__version__ = \"2.12.1\"")), "2.12.1");
  EXPECT_EQ(torch_version(install("version = 'x'")), "");
  EXPECT_EQ(torch_version("/no/such/torch/lib/x.so"), "");
}

TEST_F(TorchLibraryTest, ComparesMajorAndMinor) {
  EXPECT_TRUE(is_same_minor("2.11.0+cu130", "2.11.4"));
  EXPECT_FALSE(is_same_minor("2.1.1", "2.11.0"));
  EXPECT_FALSE(is_same_minor("3.11.0", "2.11.0"));
  EXPECT_FALSE(is_same_minor("", "2.11.0"));
  EXPECT_TRUE(is_same_minor("2", "2"));
}

std::string complaint(const std::string& built_with, const std::string& name) {
  try {
    open_torch_beside(built_with, name);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    return error.message();
  }
  return "";
}

TEST_F(TorchLibraryTest, NamesWhatIsMissing) {
  EXPECT_THAT(complaint("2.11.0+cu130", "libtorch_that_is_not_there.so"),
              testing::AllOf(HasSubstr("no torch beside this wheel"), HasSubstr("libtorch_that_is_not_there.so"),
                             HasSubstr("fix: python -m pip install 'torch==2.11.*'")));
}

TEST_F(TorchLibraryTest, NamesATorchWhoseVersionIsNotTheOneItWasBuiltWith) {
  // The C library is not torch: beside it stands no version.
  EXPECT_THAT(complaint("2.11.0", "libc.so.6"),
              testing::AllOf(HasSubstr("torch of an unknown version in "), HasSubstr("built with 2.11.0"),
                             HasSubstr("python -m pip install 'torch==2.11.*'")));
}

}  // namespace
}  // namespace lockstep::site
