// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/image_files.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/image/decode.h"

namespace lockstep::verbs::predict {
namespace {

TEST(ImageFilesTest, ReadsHashesAndShrinks) {
  const base::TemporaryFolder folder;
  const image::Image wide(4200, 30);
  base::write_file(folder.path() / "a.jpg", image::encode_jpeg(wide, 90));
  base::write_file(folder.path() / "b.jpg", "no image");
  const auto collection = loader::scan_images(folder.path().string());
  const ImageFile file = ImageFiles(collection, ImageFiles::Pictures::decode).read(0);
  EXPECT_EQ(file.sha256, base::sha256_of_file(folder.path() / "a.jpg"));
  EXPECT_EQ(file.picture.width, kPictureSize);
  EXPECT_EQ(file.picture.height, 7);
  EXPECT_EQ(file.state, results::look_at_file(folder.path() / "a.jpg"));
  EXPECT_TRUE(ImageFiles(collection, ImageFiles::Pictures::none).read(0).picture.pixels.empty());
  const ImageFile bad = ImageFiles(collection, ImageFiles::Pictures::decode).read(1);
  EXPECT_EQ(bad.sha256.size(), 64U);
  EXPECT_TRUE(bad.picture.pixels.empty());
  std::filesystem::remove(folder.path() / "b.jpg");
  EXPECT_EQ(ImageFiles(collection, ImageFiles::Pictures::none).read(1).sha256, "");
}

TEST(ParallelTest, DoesAllOfItOnceAndThrowsTheFirstError) {
  std::vector<std::atomic<int>> done(100);
  Parallel(100, 4, [&](int64_t i) { ++done[static_cast<size_t>(i)]; }).wait();
  for (const auto& count : done) EXPECT_EQ(count, 1);
  Parallel failing(100, 4, [&](int64_t i) {
    if (i == 7) throw base::Error(base::Blame::machine, "EIO");
  });
  EXPECT_THROW(failing.wait(), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::predict
