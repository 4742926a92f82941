// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/jpeg_rows.h"

#include <gtest/gtest.h>

#include "lockstep/data/decode.h"

namespace lockstep::data {
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

}  // namespace
}  // namespace lockstep::data
