// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/jpeg_rows.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/base/random.h"
#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

std::span<const std::byte> span_of(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

TEST(JpegRowsTest, SaysNothingOfAPlainOrForeignFile) {
  const std::string plain = encode_jpeg(Image(40, 40), 90);
  EXPECT_TRUE(read_jpeg_layout(span_of(plain)).row_offsets.empty());
  EXPECT_FALSE(read_jpeg_layout(span_of(plain)).progressive);
  EXPECT_TRUE(read_jpeg_layout(span_of("this is text")).row_offsets.empty());
}

TEST(JpegRowsTest, RestartMarkersLeaveEveryPixelAsItWas) {
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{75, 61}, {16, 16}, {8, 200}, {333, 1}}) {
    Image image(width, height);
    base::Random random(4);
    for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits());
    const std::string plain = encode_jpeg(image, 90);
    const std::string restarted = with_restart_markers(span_of(plain));
    EXPECT_EQ(decode_image(span_of(restarted)), decode_image(span_of(plain)));
    const auto rows = read_jpeg_layout(span_of(restarted)).row_offsets;
    ASSERT_EQ(rows.size(), static_cast<size_t>((height + 15) / 16));  // 4:2:0
    for (size_t i = 1; i < rows.size(); ++i) {
      EXPECT_EQ(static_cast<uint8_t>(restarted[rows[i] - 2]), 0xFF);
      EXPECT_EQ(static_cast<uint8_t>(restarted[rows[i] - 1]), 0xD0 + (i - 1) % 8);
    }
    EXPECT_EQ(with_restart_markers(span_of(restarted)), restarted);
  }
}

TEST(JpegRowsTest, GivesNoRowsWhenAMarkerIsMissing) {
  Image image(64, 64);
  std::string file = with_restart_markers(span_of(encode_jpeg(image, 90)));
  const auto rows = read_jpeg_layout(span_of(file)).row_offsets;
  ASSERT_EQ(rows.size(), 4u);
  file.erase(rows[1] - 2, 2);
  EXPECT_TRUE(read_jpeg_layout(span_of(file)).row_offsets.empty());
}

TEST(JpegRowsTest, ReadsNoByteBehindAScanHeaderWithoutContent) {
  using std::string_literals::operator""s;
  const std::string file = "\xFF\xD8\xFF\xC0\0\x0B\x08\0\x08\0\x08\x01\x01\x11\0\xFF\xDA\0\x02"s;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const pages = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(::mprotect(static_cast<char*>(pages) + page, page, PROT_NONE), 0);  // who reads there dies
  char* const at = static_cast<char*>(pages) + page - file.size();
  std::copy(file.begin(), file.end(), at);
  EXPECT_TRUE(read_jpeg_layout(std::as_bytes(std::span(at, file.size()))).row_offsets.empty());
  ::munmap(pages, 2 * page);
}

}  // namespace
}  // namespace lockstep::image
