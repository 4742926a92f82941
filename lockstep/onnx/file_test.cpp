// SPDX-License-Identifier: Apache-2.0
#include "lockstep/onnx/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/onnx/small_model.h"
#include "lockstep/run/small_disk.h"

namespace lockstep::onnx {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

TEST(FileTest, HasTheTensorsInsideUnlessTheyAreTooLarge) {
  const base::TemporaryFolder folder;
  const SmallModel small;
  const Written whole = write_file(folder.path() / "a.onnx", small.model);
  EXPECT_TRUE(whole.data.empty());
  const std::string content = base::read_file(whole.file);
  EXPECT_EQ(content.size(), whole.bytes);
  EXPECT_THAT(content, HasSubstr("\x42\x06weight\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40"s));
  EXPECT_THAT(content, HasSubstr("\x0a\x07\x12\x05"
                                 "batch"s));

  const Written split = write_file(folder.path() / "b.onnx", small.model, 7000);
  EXPECT_EQ(split.data, folder.path() / "b.onnx.data");
  EXPECT_EQ(std::filesystem::file_size(split.data), 8192U);
  const std::string rest = base::read_file(split.file);
  EXPECT_EQ(rest.size() + 8192, split.bytes);
  EXPECT_THAT(rest, HasSubstr("b.onnx.data"));
  EXPECT_THAT(rest, HasSubstr("\x42\x06weight\x4a\x08"s));  // a small one stays
  EXPECT_LT(rest.size(), 1000U);
}

TEST(FileTest, AFullDiskLeavesNothingBehind) {
  const base::TemporaryFolder folder;
  const SmallModel small;
  {
    const run::SmallDisk disk(10);
    EXPECT_THROW(write_file(folder.path() / "a.onnx", small.model), base::Error);
  }
  EXPECT_TRUE(base::list_folder(folder.path()).empty());
}

}  // namespace
}  // namespace lockstep::onnx
