// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/hash.h"

namespace lockstep::run {
namespace {

template <class T>
T take(std::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

// The messages of the framed records; fails the test at a wrong checksum.
std::vector<std::string> records_of(std::string_view bytes) {
  std::vector<std::string> records;
  const auto crc = [](std::string_view of) {
    const uint32_t plain = base::crc32c(of);
    return ((plain >> 15) | (plain << 17)) + 0xa282ead8U;
  };
  while (!bytes.empty()) {
    const std::string_view length_bytes = bytes.substr(0, 8);
    const auto length = take<uint64_t>(bytes);
    EXPECT_EQ(take<uint32_t>(bytes), crc(length_bytes));
    records.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
    EXPECT_EQ(take<uint32_t>(bytes), crc(records.back()));
  }
  return records;
}

TEST(EventWriterTest, FramesEachEventWithItsChecksums) {
  const base::TemporaryFolder temporary;
  EventWriter writer(temporary.path() / "events");
  writer.scalar("train/loss", 300, 0.5);
  const auto records = records_of(base::read_file(writer.path()));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_THAT(records[0], testing::EndsWith("\x1a\x0d"
                                            "brain.Event:2"));
  // step 300 as a varint; summary > value > tag, simple_value 0.5f
  const std::string tail("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0atrain/loss\x15\x00\x00\x00\x3f", 24);
  EXPECT_THAT(records[1], testing::EndsWith(tail));
}

TEST(EventWriterTest, FileNameIsWhatTensorBoardLooksFor) {
  const base::TemporaryFolder temporary;
  const EventWriter writer(temporary.path());
  EXPECT_THAT(writer.path().filename().string(), testing::StartsWith("events.out.tfevents."));
}

}  // namespace
}  // namespace lockstep::run
