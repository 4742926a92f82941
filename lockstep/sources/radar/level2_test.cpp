// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/level2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/sources/radar/big_endian.h"
#include "lockstep/sources/radar/rain_world.h"

namespace lockstep::sources {
namespace {

using testing::HasSubstr;

std::span<const std::byte> level2_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

RadarVolume small_volume() {
  RadarVolume volume = RainWorld{.seed = 3}.volume(10, 20);
  volume.sweeps[0].values[5] = kNotMeasured;
  return volume;
}

// Of a message 1 file: one ray.
std::string old_file() {
  BigEndianText file;
  file.text("ARCHIVE2.001");
  file.u32(12000);
  file.u32(1000);
  file.text("KLOT");
  file.zeros(12);
  file.u16(1208);  // a message of a whole frame
  file.u8(0);
  file.u8(1);
  file.zeros(12);
  const size_t body = file.size();
  file.u32(5000);
  file.u16(12000);
  file.u16(350);    // unambiguous range
  file.u16(16384);  // azimuth: 90 degrees
  file.u16(1);
  file.u16(0);  // begins a sweep
  file.u16(91);
  file.u16(1);
  file.u16(0);
  file.u16(0);
  file.u16(1000);
  file.u16(250);
  file.u16(3);
  file.u16(0);
  file.zeros(body + 36 - file.size());
  file.u16(100);
  file.zeros(body + 100 - file.size());
  for (const uint8_t raw : {0, 1, 106}) file.u8(raw);
  file.zeros(24 + 2432 - file.size());
  return file.take();
}

std::string volume_header() {
  BigEndianText file;
  file.text("AR2V0006.001");
  file.u32(19000);
  file.u32(0);
  file.text("KXXX");
  return file.take();
}

// A plain message 31 of so many gates, its reflectivity pointed to `pointers` times.
std::string radial(uint16_t gates, uint8_t status, uint16_t pointers = 1) {
  BigEndianText message;
  const size_t at = 32 + size_t{4} * pointers, body = at + 28 + gates + gates % 2;
  message.zeros(12);
  message.u16(static_cast<uint16_t>((16 + body) / 2));
  message.u8(0);
  message.u8(31);
  message.zeros(12 + 21);
  message.u8(status);
  message.u8(1);
  message.zeros(7);
  message.u16(pointers);
  for (uint16_t i = 0; i < pointers; ++i) message.u32(static_cast<uint32_t>(at));
  message.text("DREF");
  message.u32(0);
  message.u16(gates);
  message.u16(0);
  message.u16(250);
  message.zeros(5);
  message.u8(8);
  message.f32(2);
  message.f32(66);
  message.zeros(gates + gates % 2);
  return message.take();
}

TEST(Level2Test, ARayHasItsReflectivityOnce) {
  const std::string file = volume_header() + radial(4, 3, 32);
  const RadarVolume volume = read_level2(level2_bytes(file), "x");
  ASSERT_EQ(volume.sweeps.size(), 1U);
  EXPECT_EQ(volume.sweeps[0].gates, 4);
}

TEST(Level2Test, AFileOfNarrowRaysDoesNotFillTheMemory) {
  std::string file = volume_header();
  for (int sweep = 0; sweep < 6; ++sweep) {
    file += radial(4096, 0);
    for (int ray = 0; ray < 4000; ++ray) file += radial(1, 1);
  }
  const RadarVolume volume = read_level2(level2_bytes(file), "x");  // of 3 MB, which would take 400
  EXPECT_THAT(volume.fault, HasSubstr("damaged: more than 67108864 values"));
  EXPECT_EQ(volume.sweeps.size(), 5U);
}

TEST(Level2Test, ReadsWhatItsWriterWrote) {
  const RadarVolume volume = small_volume();
  const std::string file = write_level2(volume);
  ASSERT_TRUE(looks_like_level2(level2_bytes(file)));
  const RadarVolume seen = read_level2(level2_bytes(file), "x");
  EXPECT_EQ(seen.fault, "");
  EXPECT_EQ(seen.site, "KSYN");
  EXPECT_EQ(seen.seconds, volume.seconds);
  EXPECT_NEAR(seen.latitude, 47.5, 1e-5);
  ASSERT_EQ(seen.sweeps.size(), 1U);
  const PolarSweep &was = volume.sweeps[0], &is = seen.sweeps[0];
  EXPECT_EQ(is.azimuths, was.azimuths);
  EXPECT_EQ(is.gates, 20);
  EXPECT_EQ(is.first_gate, 500);
  EXPECT_EQ(is.gate_spacing, 1000);
  EXPECT_NEAR(is.elevation, 0.5, 1e-6);
  ASSERT_EQ(is.values.size(), was.values.size());
  int64_t echoes = 0;
  for (size_t i = 0; i < is.values.size(); ++i) {
    if (std::isnan(was.values[i])) {
      EXPECT_TRUE(std::isnan(is.values[i]));
    } else if (was.values[i] == kNoEcho) {
      EXPECT_EQ(is.values[i], kNoEcho);
    } else {
      EXPECT_NEAR(is.values[i], was.values[i], 0.2501);
      ++echoes;
    }
  }
  EXPECT_GT(echoes, 100);
  EXPECT_EQ(write_level2(seen), file);
}

TEST(Level2Test, ReadsMessagesOfBefore2008) {
  const std::string file = old_file();
  const RadarVolume volume = read_level2(level2_bytes(file), "x");
  EXPECT_EQ(volume.fault, "");
  EXPECT_EQ(volume.site, "KLOT");
  ASSERT_EQ(volume.sweeps.size(), 1U);
  const PolarSweep& sweep = volume.sweeps[0];
  EXPECT_NEAR(sweep.azimuths[0], 90, 1e-9);
  EXPECT_NEAR(sweep.elevation, 0.49988, 1e-4);
  EXPECT_EQ(sweep.gate_spacing, 1000);
  ASSERT_EQ(sweep.gates, 3);
  EXPECT_EQ(sweep.values[0], kNoEcho);
  EXPECT_TRUE(std::isnan(sweep.values[1]));
  EXPECT_EQ(sweep.values[2], 20);
}

TEST(Level2Test, ATruncatedVolumeGivesWhatIsThereAndSaysWhereItEnds) {
  const std::string file = write_level2(small_volume());
  for (size_t size = 24; size < file.size(); size += 97) {
    const RadarVolume volume = read_level2(level2_bytes(file.substr(0, size)), "x");
    EXPECT_THAT(volume.fault, HasSubstr("cut off")) << size;
  }
  const RadarVolume half = read_level2(level2_bytes(file.substr(0, file.size() * 3 / 4)), "x");
  ASSERT_EQ(half.sweeps.size(), 1U);
  EXPECT_LT(half.sweeps[0].rays(), 360);
  EXPECT_THROW((void)half.lowest("x"), base::Error);
}

TEST(Level2Test, WhatIsNoVolumeIsNamed) {
  for (const std::string& file : {std::string("AR2V"), std::string(3000, 'x'), std::string()}) {
    EXPECT_FALSE(looks_like_level2(level2_bytes(file)));
    EXPECT_THROW(read_level2(level2_bytes(file), "x"), base::Error);
  }
}

TEST(Level2Test, ADamagedRecordIsNamed) {
  std::string file = write_level2(small_volume());
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 0x55);
  EXPECT_THAT(read_level2(level2_bytes(file), "x").fault, HasSubstr("damaged in record"));
}

}  // namespace
}  // namespace lockstep::sources
