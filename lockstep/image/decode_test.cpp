// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using testing::HasSubstr;

std::string complaint_about(const std::string& content) {
  try {
    decode_image(std::as_bytes(std::span(content.data(), content.size())));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.fix(), "");
    return error.what();
  }
  return "no complaint";
}

TEST(DecodeTest, SaysWhatAFileIsThatIsNoImage) {
  EXPECT_EQ(complaint_about(""), "the file is empty");
  EXPECT_EQ(complaint_about("just some text"), "neither JPEG, PNG, WebP nor TIFF");
  EXPECT_EQ(complaint_about("GIF89a..."), "neither JPEG, PNG, WebP nor TIFF: this is a GIF file");
  EXPECT_EQ(complaint_about("version https://git-lfs.github.com/spec/v1"),
            "neither JPEG, PNG, WebP nor TIFF: this is a Git LFS pointer file");
  EXPECT_THAT(complaint_about(std::string("II*\0\x10\0\0\0CR\x02\0", 12)), HasSubstr("a Canon raw file"));
  EXPECT_THAT(complaint_about("RIFF....WEBPVP8 "), HasSubstr("damaged WebP"));
  EXPECT_THAT(complaint_about(std::string("MM\0*", 4)), HasSubstr("damaged TIFF"));
  EXPECT_THAT(complaint_about("\xFF\xD8\xFF"), HasSubstr("damaged JPEG"));
  EXPECT_THAT(complaint_about("\x89PNG\r\n\x1a\n"), HasSubstr("damaged PNG"));
}

TEST(DecodeTest, NamesAConverter) {
  const auto fix = [](const std::string& content) -> std::string {
    try {
      decode_image(std::as_bytes(std::span(content.data(), content.size())));
    } catch (const base::Error& error) {
      return error.fix();
    }
    return "";
  };
  for (const char* brand : {"heic", "heix", "hevc", "mif1", "avif"}) {
    EXPECT_EQ(fix(std::string("\0\0\0\x18"
                              "ftyp",
                              8) +
                  brand),
              "convert it: heif-convert IN OUT.jpg (Debian: libheif-examples)")
        << brand;
  }
  EXPECT_THAT(fix("BM......"), HasSubstr("imagemagick"));
  EXPECT_THAT(fix("version https://git-lfs.github.com/spec/v1"), HasSubstr("git lfs pull"));
}

// The letter F in 2 x 3 pixels tells all eight orientations apart.
TEST(DecodeTest, OrientsAsExifSays) {
  Image stored(2, 3);
  for (size_t i = 0; i < 6; ++i) stored.pixels[3 * i] = static_cast<uint8_t>(i);  // 01 / 23 / 45
  const auto seen = [&](int orientation) {
    const Image image = orient(stored, orientation);
    std::string text;
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < image.width; ++x) text += static_cast<char>('0' + image.row(y)[3 * x]);
      text += '/';
    }
    return text;
  };
  EXPECT_EQ(seen(1), "01/23/45/");
  EXPECT_EQ(seen(2), "10/32/54/");
  EXPECT_EQ(seen(3), "54/32/10/");
  EXPECT_EQ(seen(4), "45/23/01/");
  EXPECT_EQ(seen(5), "024/135/");
  EXPECT_EQ(seen(6), "420/531/");
  EXPECT_EQ(seen(7), "531/420/");
  EXPECT_EQ(seen(8), "135/024/");
}

int64_t bytes_to_decode(const std::string& file) {
  return decode_bytes(std::as_bytes(std::span(file.data(), file.size())));
}

TEST(DecodeTest, KnowsByTheHeaderWhatDecodingTakes) {
  const Image image(40, 30);
  EXPECT_EQ(bytes_to_decode(encode_png(image)), 40 * 30 * 7);
  std::string jpeg = encode_jpeg(image, 90);
  EXPECT_EQ(bytes_to_decode(jpeg), 40 * 30 * 3);
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg[frame + 1] = '\xC2';  // progressive: all coefficients are kept
  EXPECT_EQ(bytes_to_decode(jpeg), 40 * 30 * 9);
  std::string forged = encode_png(image);
  forged.replace(16, 8, 8, '\x7F');  // refused by decode_image, in words
  EXPECT_EQ(bytes_to_decode(forged), 0);
  for (const char* none :
       {"", "text", "\xFF\xD8\xFF", "\x89PNG\r\n\x1a\n", "\xFF\xD8\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"}) {
    EXPECT_EQ(bytes_to_decode(none), 0);
  }
}

// Threads have the stack of `ulimit -s`, which a site may keep small.
TEST(DecodeTest, RewritesOnASmallStack) {
  struct Work {
    std::string file = encode_jpeg(Image(40, 30), 90);
    std::string rewritten;
  } work;
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  pthread_t thread{};
  const auto run = [](void* all) -> void* {
    auto& mine = *static_cast<Work*>(all);
    mine.rewritten = with_restart_markers(std::as_bytes(std::span(mine.file.data(), mine.file.size())));
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, run, &work), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  EXPECT_FALSE(work.rewritten.empty());
}

TEST(DecodeTest, ResizesAWholeImage) {
  Image image(4, 2);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i % 3 * 100);
  const Image small = resize_image(image, 2, 1);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{0, 100, 200, 0, 100, 200}));
}

}  // namespace
}  // namespace lockstep::image
