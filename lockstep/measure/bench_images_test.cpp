// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/bench_images.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/store.h"

namespace lockstep::measure {
namespace {

TEST(BenchImagesTest, EveryFormHoldsTheSamePixels) {
  const base::TemporaryFolder folder;
  const ImageSet set = write_images(folder.path(), 4, "");
  std::vector<std::vector<image::Image>> forms;
  for (const auto& form : {set.folder, set.tars, set.restarted_tars}) {
    const loader::Collection collection = loader::scan_folder(form.string());
    const auto store = loader::open_store(collection);
    ASSERT_EQ(collection.samples.size(), 4u);
    forms.emplace_back();
    std::vector<std::byte> memory;
    for (const int64_t id : {0, 1, 2, 3}) forms.back().push_back(image::decode_image(store->read(id, memory)));
  }
  EXPECT_EQ(forms[1], forms[2]);
  EXPECT_EQ(forms[0], (std::vector{forms[1][0], forms[1][2], forms[1][1], forms[1][3]}));  // sorted by class
}

TEST(BenchImagesTest, AMadeUpImageIsAsLargeAFileAsAPhotograph) {
  const auto bytes = image::encode_jpeg(draw_image(kImageWidth, kImageHeight, 1), kImageQuality).size();
  EXPECT_GT(bytes, 40000u);  // photographs of this size and quality: 40 to 110 kB
  EXPECT_LT(bytes, 110000u);
}

TEST(BenchImagesTest, PhotographsAreScaledToCover) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "one.jpg", image::encode_jpeg(draw_image(300, 800, 5), 90));
  const ImageSet set = write_images(folder.path() / "set", 2, folder.path().string());
  const loader::Collection collection = loader::scan_folder(set.folder.string());
  std::vector<std::byte> memory;
  const image::Image image = image::decode_image(loader::open_store(collection)->read(0, memory));
  EXPECT_EQ(image.width, kImageWidth);
  EXPECT_EQ(image.height, kImageHeight);
  base::make_folders(folder.path() / "empty");
  EXPECT_THROW(write_images(folder.path() / "set2", 2, (folder.path() / "empty").string()), base::Error);
}

}  // namespace
}  // namespace lockstep::measure
