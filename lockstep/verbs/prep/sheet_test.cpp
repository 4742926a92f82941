// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/sheet.h"

#include <gtest/gtest.h>

#include "lockstep/data/decode.h"
#include "lockstep/data/shard_set.h"

namespace lockstep::verbs {
namespace {

data::Image drawn(const base::Path& folder) {
  const std::string file = draw_sheet(folder);
  return data::decode_image(std::as_bytes(std::span(file.data(), file.size())));
}

int64_t num_red(const data::Image& image) {
  int64_t count = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    count += image.pixels[i] > 180 && image.pixels[i + 1] < 110 && image.pixels[i + 2] < 110;
  return count;
}

TEST(SheetTest, ShowsARowAClass) {
  const base::TemporaryFolder folder;
  const std::string picture = data::encode_jpeg(data::Image(50, 40), 90);
  data::ShardWriter writer(folder.path(), "shard-000000");
  for (int32_t i = 0; i < 30; ++i) writer.add({std::to_string(i), i % 2, 0}, {{"jpg", picture}});
  data::write_shard_list(folder.path(), {"", {"cat", "dog"}, {writer.finish()}});
  const data::Image sheet = drawn(folder.path());
  EXPECT_GT(sheet.width, 10 * 96);
  EXPECT_GT(sheet.height, 2 * 96);
  EXPECT_LT(sheet.height, 3 * 96);
}

TEST(SheetTest, DrawsTheBoxesOfSamplesWithoutAClass) {
  const base::TemporaryFolder folder;
  data::Image image(100, 80);
  const std::string picture = data::encode_jpeg(image, 90);
  for (const char* objects : {"[]", R"([{"bbox": [20, 20, 100, 80]}])"}) {
    const std::string json = std::string(R"({"width": 200, "height": 160, "objects": )") + objects + "}";
    data::ShardWriter writer(folder.path(), "shard-000000");
    writer.add({"0", data::kNoLabel, 0}, {{"jpg", picture}, {"json", json}});
    data::write_shard_list(folder.path(), {"", {"cat"}, {writer.finish()}});
    const int64_t red = num_red(drawn(folder.path()));
    if (objects[1] == ']') {
      EXPECT_EQ(red, 0);
    } else {
      EXPECT_GT(red, 100);
    }
  }
}

}  // namespace
}  // namespace lockstep::verbs
