// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"

namespace lockstep::loader {
namespace {

using testing::HasSubstr;

TEST(DataCheckTest, FindsAllThatARunCouldNotUse) {
  const base::TemporaryFolder folder;
  for (const char* name : {"a", "b"}) base::make_folders(folder.path() / name);
  image::Image image(64, 64);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i >> 3);
  const std::string jpeg = image::encode_jpeg(image, 90);
  std::string damaged = jpeg;  // in the last rows: a centre crop never sees it
  damaged.erase(damaged.size() - 40, 30);
  for (int i = 0; i < 9; ++i) base::write_file(folder.path() / "a" / base::text(i, ".jpg"), jpeg);
  base::write_file(folder.path() / "a/3.jpg", damaged);
  base::write_file(folder.path() / "b/empty.jpg", "");
  base::write_file(folder.path() / "b/phone.jpg", std::string("\0\0\0\x18"
                                                              "ftypheic\0\0\0\0",
                                                              16));
  base::write_file(folder.path() / "b/good.jpg", jpeg);
  const Collection collection = scan_folder(folder.path().string());
  spec::Job job;
  job.data.image_size = 16;
  job.model.classes = 2;
  for (const int64_t threads : {1, 3}) {
    int64_t last = 0;
    const auto bad = find_bad_samples(collection, *task::make_task(job), threads, [&](int64_t done) { last = done; });
    EXPECT_EQ(last, 12);
    ASSERT_EQ(bad.size(), 3u);
    EXPECT_EQ(bad[0].path, (folder.path() / "a/3.jpg").string());
    EXPECT_THAT(bad[0].reason, HasSubstr("damaged JPEG"));
    EXPECT_EQ(bad[1].path, (folder.path() / "b/empty.jpg").string());
    EXPECT_THAT(bad[2].reason, HasSubstr("this is a HEIC file"));
  }
}

TEST(DataCheckTest, FindsASampleWithoutWhatItsTaskLearns) {
  const base::TemporaryFolder folder;
  for (const char* name : {"1", "2"}) {
    base::write_file(folder.path() / base::text(name, ".png"), image::encode_png(image::Image(8, 8)));
    base::write_file(folder.path() / base::text(name, ".json"), name[0] == '1' ? R"({"age": 3})" : "{}");
  }
  spec::Job job;
  job.task = spec::Task::regress;
  job.regress.value = "age";
  job.data.image_size = 8;
  const auto bad = find_bad_samples(scan_images(folder.path().string()), *task::make_task(job), 2);
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_THAT(bad[0].reason, HasSubstr("no number 'age'"));
}

}  // namespace
}  // namespace lockstep::loader
