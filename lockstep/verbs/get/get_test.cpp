// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/get/get.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/site/fake_scheduler.h"
#include "lockstep/weights/preprocessing.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::verbs::get {
namespace {

using base::Path;

const Path kCheckpoint = "tests/fuzz/corpus/pth/zip.pth";

Source checkpoint_source(const std::string& url = "file:///nowhere/zip.pth") {
  Source source;
  source.kind = "weights";
  source.name = "tiny";
  source.licence = "CC0";
  source.files = {{url, "", base::sha256_hex(base::read_file(kCheckpoint)).substr(0, 8), "", 0}};
  return source;
}

TEST(GetTest, ConvertsAGivenCheckpointToSafetensors) {
  const base::TemporaryFolder folder;
  const GetResult result = get_source(checkpoint_source(), kCheckpoint, folder.path() / "models/tiny.safetensors");
  EXPECT_EQ(result.tensors, 3U);
  const weights::SafetensorsFile file(result.path);
  EXPECT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.metadata().at("licence"), "CC0");
}

TEST(GetTest, TheFileSaysHowItsImagesAreShown) {
  const base::TemporaryFolder folder;
  Source source = checkpoint_source();
  source.image_size = 224;
  source.mean = {0.1, 0.2, 0.3};
  source.std = {0.4, 0.5, 0.6};
  source.center_crop = 0.875;
  const GetResult result = get_source(source, kCheckpoint, folder.path() / "tiny.safetensors");
  EXPECT_EQ(weights::read_preprocessing(result.path), (weights::Preprocessing{224, source.mean, source.std, 0.875}));
}

TEST(GetTest, DownloadsByAddress) {
  const base::TemporaryFolder folder;
  const std::string url = "file://" + std::filesystem::absolute(kCheckpoint).string();
  EXPECT_EQ(get_source(checkpoint_source(url), {}, folder.path() / "w").tensors, 3U);
}

TEST(GetTest, ADownloadIsSentOnByHttpsAlone) {
  const base::TemporaryFolder folder;
  site::FakeScheduler no_other_commands;
  for (const std::string name : {"curl", "wget"}) {
    no_other_commands.install_script(name, "echo \"$@\" > '" + (folder.path() / name).string() + "'; exit 1");
  }
  EXPECT_THROW(get_source(checkpoint_source("https://here/zip.pth"), {}, folder.path() / "w"), base::Error);
  EXPECT_THAT(base::read_file(folder.path() / "curl"), testing::HasSubstr("--proto-redir =https "));
  EXPECT_THAT(base::read_file(folder.path() / "wget"), testing::HasSubstr("--max-redirect=0 "));
}

TEST(GetTest, WithoutANetworkItSaysWhatToRunElsewhere) {
  const base::TemporaryFolder folder;
  try {
    get_source(checkpoint_source(), {}, folder.path() / "w");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_THAT(error.fix(), testing::HasSubstr("curl -fLO file:///nowhere/zip.pth"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("lockstep get weights tiny --from zip.pth"));
  }
}

TEST(GetTest, AFileWithAnotherChecksumIsRefusedAndNothingIsWritten) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "other.pth", "something else");
  try {
    get_source(checkpoint_source(), folder.path() / "other.pth", folder.path() / "w");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("other.pth: sha256 "));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "w"));
}

TEST(GetTest, DataIsCheckedByItsPublishersMd5) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "a.tar.gz", "one");
  Source source;
  source.kind = "data";
  source.name = "set";
  source.files = {{"file://" + (folder.path() / "a.tar.gz").string(), "", "", "f97c5d29941bfb1b2fdab0874906ab82", 0}};
  const GetResult result = get_source(source, {}, folder.path() / "set");
  EXPECT_EQ(base::read_file(folder.path() / "set/a.tar.gz"), "one");
  EXPECT_EQ(result.bytes, 3U);
  EXPECT_NO_THROW(get_source(source, folder.path(), folder.path() / "again"));
  base::write_file(folder.path() / "set/a.tar.gz", "two");
  EXPECT_THROW(get_source(source, {}, folder.path() / "set"), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::get
