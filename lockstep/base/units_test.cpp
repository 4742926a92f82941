// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

template <class Parse>
std::string refusal(Parse parse, std::string_view words) {
  try {
    parse(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::user);
    EXPECT_FALSE(error.fix().empty());
    return error.what();
  }
  return "";
}

TEST(UnitsTest, ReadsBytes) {
  EXPECT_EQ(parse_bytes("512 B"), 512);
  EXPECT_EQ(parse_bytes("12GB"), 12'000'000'000);
  EXPECT_EQ(parse_bytes(" 16 GiB "), int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5 kB"), 1500);
}

TEST(UnitsTest, ReadsDurations) {
  EXPECT_EQ(parse_duration("48:00:00"), 48 * 3600);
  EXPECT_EQ(parse_duration("1-12:00:00"), 36 * 3600);
  EXPECT_EQ(parse_duration("1-12"), 36 * 3600);  // days-hours, days-hours:minutes: Slurm's
  EXPECT_EQ(parse_duration("0-10:30"), 10.5 * 3600);
  EXPECT_EQ(parse_duration("90 min"), 5400);
  EXPECT_EQ(parse_duration("90m"), 5400);
  EXPECT_EQ(parse_duration("2h30min"), 9000);
  EXPECT_EQ(parse_duration("2 h 30 min"), 9000);
  EXPECT_EQ(parse_duration("1.5 d"), 129600);
  EXPECT_EQ(parse_duration("250 ms"), 0.25);
  EXPECT_EQ(parse_duration("none"), 0);
}

TEST(UnitsTest, ReadsRatesInBytesAndBits) {
  EXPECT_EQ(parse_rate("12 GB/s"), 12e9);
  EXPECT_EQ(parse_rate("100 Gbit/s"), 12.5e9);
}

TEST(UnitsTest, RefusesAMissingOrUnknownUnit) {
  EXPECT_EQ(refusal(parse_bytes, "12"), "'12' has no unit");
  EXPECT_EQ(refusal(parse_bytes, "12 gb"), "'12 gb' has the unknown unit 'gb'");
  EXPECT_EQ(refusal(parse_bytes, "much"), "'much' is not an amount of memory");
  EXPECT_EQ(refusal(parse_bytes, "9000000 PB"), "'9000000 PB' is too large");
  EXPECT_EQ(refusal(parse_duration, "48"), "'48' has no unit");
  EXPECT_EQ(refusal(parse_duration, "3 weeks"), "'3 weeks' has the unknown unit 'weeks'");
  EXPECT_EQ(refusal(parse_rate, "12"), "'12' has no unit");
  EXPECT_EQ(refusal(parse_rate, "12 GB"), "'12 GB' is not a rate");
}

TEST(UnitsTest, RefusesDurationsThatCouldMeanTwoThings) {
  EXPECT_EQ(refusal(parse_duration, "90:00"), "'90:00' is not a duration");
  EXPECT_EQ(refusal(parse_duration, "2-"), "'2-' has the unknown unit '-'");
  EXPECT_EQ(refusal(parse_duration, "1:75:00"), "'1:75:00' is not a duration");
  EXPECT_EQ(refusal(parse_duration, "-2 h"), "'-2 h' is not a duration");
  EXPECT_EQ(refusal(parse_duration, ""), "'' is not a duration");
}

TEST(UnitsTest, RefusesWhatNobodyCanMean) {
  EXPECT_EQ(refusal(parse_duration, "115741-00:00:00"), "'115741-00:00:00' is longer than 300 years");
  EXPECT_EQ(refusal(parse_duration, "115741 d"), "'115741 d' is longer than 300 years");
  EXPECT_THAT(refusal(parse_rate, std::string(300, '9') + " TB/s"), testing::HasSubstr("is too large"));
}

TEST(UnitsTest, PrintsForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(12'345'678'900.0), "12.3 GB");
  EXPECT_EQ(format_bytes(999'700), "1 MB");
  EXPECT_EQ(format_rate(1.5e9), "1.5 GB/s");
  EXPECT_EQ(format_duration(0.0421), "42.1 ms");
  EXPECT_EQ(format_duration(42.13), "42.1 s");
  EXPECT_EQ(format_duration(312), "5 min 12 s");
  EXPECT_EQ(format_duration(3 * 3600 + 290), "3 h 05 min");
  EXPECT_EQ(format_duration(52 * 3600), "2 d 4 h");
  EXPECT_EQ(format_count(1281167), "1,281,167");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_short_count(25557032), "25.6M");
}

TEST(UnitsTest, ExactFormsReadBackUnchanged) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{1000001}, int64_t{16} << 30, int64_t{128'000'000'000}}) {
    EXPECT_EQ(parse_bytes(exact_bytes(bytes)), bytes) << exact_bytes(bytes);
  }
  for (const double seconds : {0.0, 0.1, 1e-7, 5400.0, 172800.0, 360000.5}) {
    EXPECT_EQ(parse_duration(exact_duration(seconds)), seconds) << exact_duration(seconds);
  }
  for (const double rate : {0.0, 1.0, 12.5e9, 1.0 / 3, 123456789.125}) {
    EXPECT_EQ(parse_rate(exact_rate(rate)), rate) << exact_rate(rate);
  }
  EXPECT_EQ(exact_bytes(int64_t{16} << 30), "16 GiB");
  EXPECT_EQ(exact_duration(172800), "48:00:00");
  EXPECT_EQ(exact_rate(12.5e9), "12.5 GB/s");
}

}  // namespace
}  // namespace lockstep::base
