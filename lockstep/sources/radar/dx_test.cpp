// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/dx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

std::span<const std::byte> dx_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Two rays: a run of 100 zeros, then 40 dBZ; and 128 gates of -32 dBZ.
std::string dx_file() {
  std::string data;
  const auto word = [&](int value) {
    data += static_cast<char>(value & 255);
    data += static_cast<char>(value >> 8);
  };
  for (const int value : {0x2000, 100, 8, 0x1000 | 100, 145}) word(value);
  for (const int value : {0x2000, 110, 8}) word(value);
  for (int gate = 0; gate < 128; ++gate) word(1);
  std::string header = "DX021600109080608BY00000VS 2\x03";
  const std::string size = std::to_string(header.size() + data.size());
  header.replace(19 + 5 - size.size(), size.size(), size);
  return header + data;
}

TEST(DxTest, UnpacksRuns) {
  const std::string file = dx_file();
  const RadarVolume volume = read_dx(dx_bytes(file), "x");
  EXPECT_EQ(volume.site, "10908");
  EXPECT_EQ(moment_text(volume.seconds), "2008-06-02 16:00:00");
  ASSERT_EQ(volume.sweeps[0].rays(), 2);
  EXPECT_EQ(volume.sweeps[0].azimuths, (std::vector<double>{10.5, 11.5}));
  EXPECT_NEAR(volume.sweeps[0].elevation, 0.8, 1e-9);
  EXPECT_EQ(volume.sweeps[0].at(0, 99), kNoEcho);
  EXPECT_EQ(volume.sweeps[0].at(0, 100), 40);
  EXPECT_TRUE(std::isnan(volume.sweeps[0].at(0, 101)));
  EXPECT_EQ(volume.sweeps[0].at(1, 127), -32);
}

TEST(DxTest, ADateThatIsNoneIsNamed) {
  std::string file = dx_file();
  file.replace(13, 2, "13");  // the month
  try {
    read_dx(dx_bytes(file), "x");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("x: damaged: its date is none"));
  }
}

TEST(DxTest, WhatIsCutOffIsNamed) {
  const std::string file = dx_file();
  for (const size_t size : {size_t{10}, size_t{30}, file.size() / 2, file.size() - 1})
    EXPECT_THROW(read_dx(dx_bytes(file.substr(0, size)), "x"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
