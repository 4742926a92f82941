// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/sources/npy.h"
#include "lockstep/sources/radar/level2.h"
#include "lockstep/sources/radar/odim.h"
#include "lockstep/sources/radar/rain_world.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::sources {
namespace {

TEST(ScanTest, LevelTwoAndOdimGiveTheSameFrame) {
  const base::TemporaryFolder folder;
  const RadarVolume volume = RainWorld{.seed = 5}.volume(18);
  base::write_file(folder.path() / "a_V06", write_level2(volume));
  write_odim(volume, folder.path() / "a.h5");
  RadarOptions options;
  options.grid = {32, 4000};
  std::vector<GriddedScan> frames;
  for (const char* name : {"a_V06", "a.h5"}) {
    ASSERT_TRUE(is_radar_file(folder.path() / name)) << name;
    const auto scans = list_scans(folder.path() / name, 5);
    ASSERT_EQ(scans.size(), 1U);
    EXPECT_EQ(scans[0].site, "KSYN");
    EXPECT_EQ(scans[0].seconds, volume.seconds);
    frames.push_back(grid_scan(scans[0], options));
  }
  EXPECT_EQ(frames[0], frames[1]);
  EXPECT_GT(std::count_if(frames[0].codes.begin(), frames[0].codes.end(), [](uint8_t code) { return code > 100; }), 5);
}

TEST(ScanTest, ArraysHaveAFrameARow) {
  const base::TemporaryFolder folder;
  const std::vector<float> values{-40, 10, NAN, 20};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 16);
  base::write_file(folder.path() / "rain.npy", npy_file("f4", std::vector<int64_t>{2, 1, 2}, bytes));
  const auto scans = list_scans(folder.path() / "rain.npy", 10);
  ASSERT_EQ(scans.size(), 2U);
  EXPECT_EQ(scans[1].seconds - scans[0].seconds, 600);
  EXPECT_EQ(grid_scan(scans[0], {}).codes, (std::vector<uint8_t>{task::kCodeDry, 86}));
  EXPECT_EQ(grid_scan(scans[1], {}).codes, (std::vector<uint8_t>{task::kCodeMissing, 106}));
  RadarOptions rates;
  rates.rates = true;
  EXPECT_EQ(grid_scan(scans[0], rates).codes, (std::vector<uint8_t>{task::kCodeDry, 144}));  // 10 mm/h: 39.0 dBZ
}

// As gzip has what it does not pack: blocks of up to 65,535 bytes, a sum (CRC-32) and the size.
std::string gzipped(const std::string& content) {
  const auto number = [](uint32_t value, int bytes) {
    std::string word;
    for (int i = 0; i < bytes; ++i) word += static_cast<char>(value >> (8 * i) & 255U);
    return word;
  };
  std::string file("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  for (size_t at = 0; at < content.size(); at += 65535) {
    const auto size = static_cast<uint32_t>(std::min<size_t>(65535, content.size() - at));
    file += at + size == content.size() ? '\1' : '\0';
    file += number(size, 2) + number(~size, 2) + content.substr(at, size);
  }
  uint32_t sum = ~0U;
  for (const char c : content) {
    sum ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1U) != 0 ? sum >> 1 ^ 0xedb88320U : sum >> 1;
  }
  return file + number(~sum, 4) + number(static_cast<uint32_t>(content.size()), 4);
}

TEST(ScanTest, AGzippedVolumeIsTheVolume) {
  const base::TemporaryFolder folder;
  const std::string volume = write_level2(RainWorld{.seed = 5}.volume(18));
  base::write_file(folder.path() / "a_V06", volume);
  base::write_file(folder.path() / "a_V06.gz", gzipped(volume));
  ASSERT_TRUE(is_radar_file(folder.path() / "a_V06.gz"));
  const auto plain = list_scans(folder.path() / "a_V06", 5), packed = list_scans(folder.path() / "a_V06.gz", 5);
  ASSERT_EQ(packed.size(), 1U);
  EXPECT_EQ(packed[0].seconds, plain[0].seconds);
  EXPECT_EQ(grid_scan(packed[0], {}), grid_scan(plain[0], {}));
}

TEST(ScanTest, AGzippedArrayIsRefusedAndNotTakenForHdf5) {
  const base::TemporaryFolder folder;
  const std::string array = npy_file("u1", std::vector<int64_t>{2, 1, 2}, "abcd");
  base::write_file(folder.path() / "rain.npy.gz", gzipped(array));
  try {
    list_scans(folder.path() / "rain.npy.gz", 5);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("a gzipped array"), std::string::npos) << error.what();
  }
  base::write_file(folder.path() / "rain.dat", array);  // whatever it is called
  EXPECT_EQ(grid_scan(list_scans(folder.path() / "rain.dat", 5)[1], {}).codes, (std::vector<uint8_t>{'c', 'd'}));
  base::write_file(folder.path() / "none.npy", npy_file("u1", std::vector<int64_t>{2, 0, 2}, ""));
  EXPECT_THROW(grid_scan(list_scans(folder.path() / "none.npy", 5)[0], {}), base::Error);
}

TEST(ScanTest, AnythingElseIsNoRadarFile) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "a.txt", std::string(100, 'x'));
  EXPECT_FALSE(is_radar_file(folder.path() / "a.txt"));
  EXPECT_TRUE(list_scans(folder.path() / "a.txt", 5).empty());
}

}  // namespace
}  // namespace lockstep::sources
