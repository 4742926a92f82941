// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/sheet.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"

namespace lockstep::sources {
namespace {

image::Image drawn(const base::Path& folder) {
  const std::string file = draw_sheet(folder);
  return image::decode_image(std::as_bytes(std::span(file.data(), file.size())));
}

int64_t num_red(const image::Image& image) {
  int64_t count = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    count += image.pixels[i] > 180 && image.pixels[i + 1] < 110 && image.pixels[i + 2] < 110;
  return count;
}

TEST(SheetTest, ShowsARowAClass) {
  const base::TemporaryFolder folder;
  const std::string encoded = image::encode_jpeg(image::Image(50, 40), 90);
  shards::ShardWriter writer(folder.path(), "shard-000000");
  for (int32_t i = 0; i < 30; ++i) writer.add({std::to_string(i), i % 2, 0}, {{"jpg", encoded}});
  shards::write_shard_list(folder.path(), {"", {"cat", "dog"}, {writer.finish()}});
  const image::Image sheet = drawn(folder.path());
  EXPECT_GT(sheet.width, 10 * 96);
  EXPECT_GT(sheet.height, 2 * 96);
  EXPECT_LT(sheet.height, 3 * 96);
}

TEST(SheetTest, DrawsTheBoxesOfSamplesWithoutAClass) {
  const base::TemporaryFolder folder;
  image::Image image(100, 80);
  const std::string encoded = image::encode_jpeg(image, 90);
  for (const char* objects : {"[]", R"([{"bbox": [20, 20, 100, 80]}])"}) {
    const std::string json = std::string(R"({"width": 200, "height": 160, "objects": )") + objects + "}";
    shards::ShardWriter writer(folder.path(), "shard-000000");
    writer.add({"0", shards::kNoLabel, 0}, {{"jpg", encoded}, {"json", json}});
    shards::write_shard_list(folder.path(), {"", {"cat"}, {writer.finish()}});
    const int64_t red = num_red(drawn(folder.path()));
    if (objects[1] == ']') {
      EXPECT_EQ(red, 0);
    } else {
      EXPECT_GT(red, 100);
    }
  }
}

TEST(SheetTest, JsonThatIsNotOursHasNoFrames) {
  const base::TemporaryFolder folder;
  const std::string encoded = image::encode_jpeg(image::Image(100, 80), 90);
  for (const char* json : {R"({"similarity": NaN})", R"({"objects": [{"bbox": ["a", 1, 2, 3]}]})",
                           R"({"width": "wide", "objects": [{"bbox": [200, 1, 2, {}]}]})", "no JSON", "[1]"}) {
    shards::ShardWriter writer(folder.path(), "shard-000000");
    writer.add({"0", shards::kNoLabel, 0}, {{"jpg", encoded}, {"json", json}});
    shards::write_shard_list(folder.path(), {"", {}, {writer.finish()}});
    EXPECT_EQ(num_red(drawn(folder.path())), 0) << json;
  }
}

// Kilobytes that this process has held at most since it was asked last.
int64_t peak_memory() {
  const std::string status = base::read_file("/proc/self/status");
  std::ofstream("/proc/self/clear_refs") << "5";
  return std::stoll(status.substr(status.find("VmHWM:") + 6));
}

TEST(SheetTest, KeepsNoImageInItsFullSize) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer holds freed memory back";
#endif
  const base::TemporaryFolder folder;
  const std::string encoded = image::encode_png(image::Image(3000, 2000));  // 17 MiB of pixels
  shards::ShardWriter writer(folder.path(), "shard-000000");
  for (int i = 0; i < 10; ++i) writer.add({std::to_string(i), 0, 0}, {{"png", encoded}});
  shards::write_shard_list(folder.path(), {"", {"a"}, {writer.finish()}});
  peak_memory();
  const int64_t before = peak_memory();
  draw_sheet(folder.path());
  EXPECT_LT(peak_memory() - before, 100 << 10);
}

}  // namespace
}  // namespace lockstep::sources
