// SPDX-License-Identifier: Apache-2.0
#include "lockstep/remote/parcel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ParcelTest, KnowsTheFilesOfAJob) {
  const base::TemporaryFolder folder;
  base::make_folders(folder.path() / "data/a");
  base::write_file(folder.path() / "data/a/x", "12345");
  spec::Job job;
  job.data.train = (folder.path() / "data").string();
  job.data.validate = job.data.train;
  job.data.test = "synthetic";
  job.model.weights = "absent.safetensors";
  const auto files = files_of(job);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0], (JobFile{"data.train", job.data.train, true, 5}));
  EXPECT_FALSE(files[1].here);
}

std::string parcel_complaint(const JobFile& file, const std::vector<std::string>& there) {
  try {
    choose_parcel({file}, there, 100, "login");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return base::text(error.what(), " | ", error.fix());
  }
  return "";
}

TEST(ParcelTest, CopiesWhatIsHereAndNamesWhatIsNowhere) {
  EXPECT_THAT(
      choose_parcel({{"data.train", "./d/", true, 50}, {"model.weights", "/w", false, 0}}, {"/w"}, 100, "login"),
      ElementsAre("d/"));
  EXPECT_THAT(choose_parcel({{"data.train", "d", false, 0}}, {"d"}, 100, "login"), IsEmpty());
  EXPECT_THAT(choose_parcel({{"data.train", "d", true, 5000}}, {"d"}, 100, "login"),
              ElementsAre("d"));  // brought up to date
  EXPECT_THAT(parcel_complaint({"data.train", "d", false, 0}, {}),
              HasSubstr("data.train: d is neither here nor on login"));
  EXPECT_THAT(parcel_complaint({"data.train", "/d", true, 1}, {}), HasSubstr("/d is not on login"));
  EXPECT_THAT(parcel_complaint({"data.train", "../d", true, 1}, {}), HasSubstr("outside this folder"));
  EXPECT_THAT(parcel_complaint({"data.train", "d", true, 101}, {}), HasSubstr("--most 200GB"));
}

class LinksTest : public testing::Test {
 protected:
  LinksTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    for (const char* folder : {"d/train", "d/validate", "elsewhere"}) base::make_folders(folder);
    for (const char* file : {"d/train/a", "elsewhere/b"}) base::write_file(file, "1");
  }
  ~LinksTest() override { std::filesystem::current_path(before_); }
  static std::string complaint(const std::vector<std::string>& parcel) {
    try {
      check_links(parcel);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      return base::text(error.what(), " | ", error.fix());
    }
    return "";
  }
  base::TemporaryFolder folder_;
  base::Path before_;
};

TEST_F(LinksTest, ThoseWithinWhatIsCopiedAreFollowed) {
  std::filesystem::create_symlink("../train/a", "d/validate/a");
  std::filesystem::create_symlink(folder_.path() / "d/train", "d/validate/all");
  EXPECT_EQ(complaint({"d"}), "");
  EXPECT_EQ(complaint({"d/train/", "d/validate"}), "");
  EXPECT_THAT(complaint({"d/validate"}), HasSubstr("d/validate/a"));
}

TEST_F(LinksTest, OneThatLeadsOutIsNamed) {
  std::filesystem::create_symlink("../../elsewhere/b", "d/train/b");
  EXPECT_THAT(complaint({"d/train"}),
              HasSubstr("d/train/b is a link to ../../elsewhere/b, outside of what is copied | put the file itself"));
  std::filesystem::remove("d/train/b");
  std::filesystem::create_symlink("absent", "d/train/b");
  EXPECT_THAT(complaint({"d/train"}), HasSubstr("d/train/b is a link to absent, which is not there"));
  std::filesystem::remove("d/train/b");
  std::filesystem::create_symlink("..", "d/train/b");
  EXPECT_THAT(complaint({"d"}), HasSubstr("there would be no end"));
}

// rsync copies what they lead to, wherever they stand: --most asks for all of it.
TEST_F(LinksTest, CountAsWhatTheyLeadTo) {
  std::filesystem::create_symlink("../../elsewhere", "d/train/all");
  std::filesystem::create_symlink("../../elsewhere/b", "d/train/b");
  std::filesystem::create_symlink("..", "d/train/round");  // check_links() refuses it
  std::filesystem::create_symlink("absent", "d/train/nowhere");
  spec::Job job;
  job.data.train = "d";
  EXPECT_EQ(files_of(job)[0].bytes, 3);
}

// As people keep their data: the job's folder has a link to it.
TEST_F(LinksTest, WhatTheJobNamesMayBeOne) {
  std::filesystem::create_symlink(folder_.path() / "elsewhere", "data");
  EXPECT_EQ(complaint({"data"}), "");
  EXPECT_EQ(parcel_words("data"), base::text("data (", (folder_.path() / "elsewhere").string(), ")"));
  EXPECT_EQ(parcel_words("d/train/"), "d/train/");
  EXPECT_EQ(parcel_words("d/train/a"), "d/train/a");
}

}  // namespace
}  // namespace lockstep::remote
