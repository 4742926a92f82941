// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::weights {
namespace {

std::string refusal_of(const base::Path& path) {
  try {
    WeightsFile file(path);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.message();
  }
  return "accepted";
}

TEST(WeightsFileTest, ASafetensorsFileMayStartLikeAPickle) {
  const base::TemporaryFolder folder;
  const float value = 1;
  const TensorView view{std::string(580, 'n'), Dtype::F32, {1}, std::as_bytes(std::span(&value, 1))};
  write_safetensors(folder.path() / "w", std::vector{view});
  ASSERT_EQ(base::read_file(folder.path() / "w").substr(0, 2), "\x80\x02");  // a header of 640 bytes
  EXPECT_EQ(WeightsFile(folder.path() / "w").tensors().size(), 1U);
}

TEST(WeightsFileTest, ReadsACheckpointWhateverItsExtension) {
  const base::Path seed = "tests/fuzz/corpus/pth/zip.pth";
  const base::TemporaryFolder folder;
  std::filesystem::copy_file(seed, folder.path() / "weights.bin");
  const WeightsFile file(folder.path() / "weights.bin");
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[1].name, "b");
  EXPECT_EQ(file.tensors()[1].shape, (std::vector<int64_t>{3, 2}));
}

TEST(WeightsFileTest, RefusesABarePickleAndEmptyFiles) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "bare.pth", "\x80\x02}.");
  base::write_file(folder.path() / "empty.pth", "");
  EXPECT_THAT(refusal_of(folder.path() / "bare.pth"), testing::HasSubstr("a bare pickle"));
  EXPECT_THAT(refusal_of(folder.path() / "bare.pth"), testing::HasSubstr("safetensors.torch.save_file"));
  EXPECT_THAT(refusal_of(folder.path() / "empty.pth"), testing::HasSubstr("not a safetensors file (0 bytes"));
  EXPECT_THAT(refusal_of(folder.path() / "none.pth"), testing::HasSubstr("there is no such file"));
}

}  // namespace
}  // namespace lockstep::weights
