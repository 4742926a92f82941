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

}  // namespace
}  // namespace lockstep::remote
