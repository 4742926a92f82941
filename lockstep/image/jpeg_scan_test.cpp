// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/jpeg_scan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/image/jpeg_door.h"
#include "lockstep/image/jpeg_rows.h"

namespace lockstep::image {
namespace {

// Flat areas, edges and noise: short and long codes, empty and full blocks.
std::string varied_jpeg(int64_t width, int64_t height, int quality) {
  Image image(width, height);
  base::Random random(11);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const bool noisy = (x / 40 + y / 24) % 3 == 0, flat = (x / 40 + y / 24) % 3 == 1;
        const auto bits = static_cast<int64_t>(random.bits() % 256);
        image.row(y)[3 * x + c] = static_cast<uint8_t>(noisy ? bits : flat ? 60 * c + 70 : (x * (3 + c) + y * 5) % 256);
      }
    }
  }
  return encode_jpeg(image, quality);
}

std::span<const std::byte> scan_bytes(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

DecodedPart part_by(JpegReader& reader, const std::string& file, const PartRequest& request, JpegEntropy entropy) {
  DecodedPart part;
  reader.open(scan_bytes(file));
  reader.read(request, part, entropy);
  return part;
}

// All that are different from the library's.
int differing_parts(const std::string& file, int64_t width, int64_t height) {
  base::Random random(3);
  JpegReader reader;
  int differing = 0;
  for (int i = 0; i < 120; ++i) {
    PartRequest request;
    request.denominator = int64_t{1} << i % 4;
    request.x = random.below(width);
    request.y = random.below(height);
    request.width = 1 + random.below(width - request.x);
    request.height = 1 + random.below(height - request.y);
    const DecodedPart own = part_by(reader, file, request, JpegEntropy::own);
    const DecodedPart library = part_by(reader, file, request, JpegEntropy::library);
    differing += own.image != library.image || own.x != library.x || own.y != library.y;
  }
  return differing;
}

TEST(ScanReaderTest, EndsWhereHostileValuesAddUpWithoutEnd) {
  HuffmanCode dc, ac;  // the one code is "0": a difference of fifteen bits, and the end of a block
  dc.num_codes[1] = ac.num_codes[1] = 1;
  dc.symbols[0] = 15;
  ScanReader reader;
  reader.set_dc_code(0, dc);
  reader.set_ac_code(0, ac);
  std::vector<uint8_t> bits;
  for (int i = 0; i < 100; ++i) {
    bits.push_back(0);
    bits.insert(bits.end(), 15, 1);  // 32,767 more
    bits.push_back(0);
  }
  bits.resize((bits.size() + 7) / 8 * 8);
  std::string data;
  for (size_t i = 0; i < bits.size(); i += 8) {
    unsigned value = 0;
    for (size_t k = 0; k < 8; ++k) value = value << 1 | bits[i + k];
    data += static_cast<char>(value);
    if (value == 0xFF) data += '\0';
  }
  ScanReader::Layout layout;
  layout.num_positions = 1;
  reader.start(scan_bytes(data), layout);
  ScanReader::Block block{};
  ScanReader::Block* blocks[] = {&block};
  EXPECT_TRUE(reader.read(0, blocks));
  EXPECT_EQ(block[0], 32767);
  EXPECT_FALSE(reader.read(60, blocks));
}

TEST(ScanReaderTest, EveryPartAtEveryScaleEqualsTheLibrarys) {
  for (const int quality : {20, 75, 90, 100}) {
    EXPECT_EQ(differing_parts(varied_jpeg(211, 165, quality), 211, 165), 0) << quality;
  }
}

TEST(ScanReaderTest, EveryPartEqualsTheLibrarysWithRestartMarkers) {
  const std::string file = restart_jpeg_rows(scan_bytes(varied_jpeg(211, 165, 90)));
  ASSERT_EQ(read_jpeg_layout(scan_bytes(file)).row_offsets.size(), 11u);
  EXPECT_EQ(differing_parts(file, 211, 165), 0);
}

TEST(ScanReaderTest, DoesNotReadTheRowsAboveThePartWhenMarkersLeadPastThem) {
  const std::string file = restart_jpeg_rows(scan_bytes(varied_jpeg(211, 165, 90)));
  const auto rows = read_jpeg_layout(scan_bytes(file)).row_offsets;
  std::string damaged = file;
  std::fill(damaged.begin() + rows[0], damaged.begin() + rows[3] - 2, '\x55');
  for (uint32_t row = 0; row < 3; ++row) {  // what stands before each row but the first is its marker
    if (row > 0) std::copy_n(file.begin() + rows[row] - 2, 2, damaged.begin() + rows[row] - 2);
  }
  const PartRequest below{20, 100, 100, 60, 1}, all{0, 0, 211, 165, 1};
  JpegReader reader;
  EXPECT_EQ(part_by(reader, damaged, below, JpegEntropy::own).image,
            part_by(reader, file, below, JpegEntropy::library).image);
  EXPECT_THROW(part_by(reader, damaged, all, JpegEntropy::own), base::Error);
}

TEST(ScanReaderTest, NoticesAMarkerOutOfTurn) {
  std::string file = restart_jpeg_rows(scan_bytes(varied_jpeg(211, 165, 90)));
  const auto rows = read_jpeg_layout(scan_bytes(file)).row_offsets;
  file[rows[4] - 1] = '\xD7';
  JpegReader reader;
  EXPECT_THROW(part_by(reader, file, {0, 0, 211, 165, 1}, JpegEntropy::own), base::Error);
}

TEST(ScanReaderTest, DamagedDataGiveAnErrorOrTheLibrarysPixels) {
  const std::string file = varied_jpeg(64, 64, 85);
  base::Random random(8);
  JpegReader reader;
  int num_equal = 0, num_rejected = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = file;
    damaged[static_cast<size_t>(random.below(static_cast<int64_t>(file.size())))] ^= static_cast<char>(random.bits());
    const PartRequest all{0, 0, 64, 64, 1};
    DecodedPart library;
    try {
      library = part_by(reader, damaged, all, JpegEntropy::library);
    } catch (const base::Error&) {
      ++num_rejected;
      continue;
    }
    if (library.image.width != 64 || library.image.height != 64) continue;  // the damage changed the size
    EXPECT_EQ(part_by(reader, damaged, all, JpegEntropy::own).image, library.image) << i;
    ++num_equal;
  }
  EXPECT_GT(num_equal, 50);
  EXPECT_GT(num_rejected, 20);
}

}  // namespace
}  // namespace lockstep::image
