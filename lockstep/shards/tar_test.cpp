// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::shards {
namespace {

using testing::HasSubstr;

std::string block_of(const std::string& content) {
  return content +
         std::string(static_cast<size_t>(padded_to_block(static_cast<int64_t>(content.size()))) - content.size(), '\0');
}

std::string member(const std::string& name, const std::string& content) {
  const auto header = ustar_header(name, static_cast<int64_t>(content.size()));
  return std::string(header.data(), header.size()) + block_of(content);
}

// The header with some bytes overwritten and its sum made right again.
std::string patched(std::string header, size_t at, std::string_view bytes) {
  header.replace(at, bytes.size(), bytes);
  unsigned sum = 0;
  std::memset(header.data() + 148, ' ', 8);
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(header[i]);
  char digits[16];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  return header;
}

std::string complaint(const std::string& file) {
  try {
    TarReader reader(std::as_bytes(std::span(file.data(), file.size())), "x.tar");
    while (reader.next()) {
    }
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "no complaint";
}

const std::string kEnd(1024, '\0');

TEST(TarTest, ReadsBackWhatTheHeadersSay) {
  const std::string file =
      member("a/0001.jpg", "picture") + member("a/0001.cls", "7") + member("b.json", std::string(512, 'x')) + kEnd;
  TarReader reader(std::as_bytes(std::span(file.data(), file.size())), "x.tar");
  EXPECT_EQ(reader.next(), (TarMember{"a/0001.jpg", 0, 512, 7}));
  EXPECT_EQ(reader.next(), (TarMember{"a/0001.cls", 1024, 1536, 1}));
  EXPECT_EQ(reader.next(), (TarMember{"b.json", 2048, 2560, 512}));
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(TarTest, HeaderIsExactlyTheOneThatAllReadersTake) {
  const auto header = ustar_header("k.jpg", 8);
  const std::string_view block(header.data(), header.size());
  EXPECT_EQ(block.substr(100, 8), std::string_view("0000444\0", 8));
  EXPECT_EQ(block.substr(124, 12), std::string_view("00000000010\0", 12));
  EXPECT_EQ(block.substr(136, 12), std::string_view("00000000000\0", 12));
  EXPECT_EQ(block.substr(156, 1), "0");
  EXPECT_EQ(block.substr(257, 8), std::string_view("ustar\00000", 8));
  EXPECT_EQ(block.substr(345), std::string(167, '\0'));
}

TEST(TarTest, RefusesNamesThatAReaderWouldMisread) {
  for (const char* name : {"", "/a.jpg", "../a.jpg", "a/../b.jpg", ".a.jpg", "a/.b.jpg", "a b.jpg", "a\tb.jpg", "a",
                           "a.", "a.JPG", "a//b.jpg", "\xC3\xA4.jpg", "\xFF.jpg"}) {
    EXPECT_NE(member_name_fault(name), "") << name;
    EXPECT_THROW(ustar_header(name, 1), base::Error) << name;
  }
  EXPECT_EQ(member_name_fault("dir.with.dots/key.seg.png"), "");
  EXPECT_EQ(member_name_fault(std::string(96, 'k') + ".jpg"), "");
  EXPECT_NE(member_name_fault(std::string(97, 'k') + ".jpg"), "");
}

TEST(TarTest, RefusesAMemberOfEightGibibytes) {
  EXPECT_NO_THROW(ustar_header("a.jpg", kMaxMemberBytes));
  EXPECT_THROW(ustar_header("a.jpg", kMaxMemberBytes + 1), base::Error);
  // As GNU tar writes such a size: base 256.
  EXPECT_THAT(
      complaint(patched(member("a.jpg", "x").substr(0, 512), 124, std::string("\x80\0\0\0\0\0\0\x02\0\0\0\0", 12)) +
                kEnd),
      HasSubstr("\"a.jpg\" is 8 GiB or more"));
}

TEST(TarTest, FollowsGnuAndPaxLongNames) {
  const std::string name = std::string(120, 'n') + ".jpg";
  const std::string gnu = patched(member("long.l", name + std::string(1, '\0')).substr(0, 512), 156, "L") +
                          block_of(name) + member("cut.jpg", "1");
  const std::string record = "134 path=" + name + "\n";
  const std::string pax =
      patched(member("pax.x", record).substr(0, 512), 156, "x") + block_of(record) + member("cut.jpg", "2");
  const std::string file = gnu + pax + kEnd;
  TarReader reader(std::as_bytes(std::span(file.data(), file.size())), "x.tar");
  EXPECT_EQ(reader.next(), (TarMember{name, 0, 1536, 1}));
  EXPECT_EQ(reader.next(), (TarMember{name, 2048, 3584, 1}));
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(TarTest, NamesWhatIsDamagedOrDangerous) {
  const std::string good = member("a.jpg", "x");
  EXPECT_THAT(complaint(good.substr(0, 700)), HasSubstr("ends within \"a.jpg\""));
  EXPECT_THAT(complaint(good + "short"), HasSubstr("truncated"));
  EXPECT_THAT(complaint(""), HasSubstr("truncated"));
  EXPECT_THAT(complaint(std::string(512, 'z')), HasSubstr("no tar header"));
  EXPECT_THAT(complaint(patched(good.substr(0, 512), 156, "2") + kEnd), HasSubstr("\"a.jpg\" is a link"));
  EXPECT_THAT(complaint(patched(good, 0, "../../etc") + kEnd), HasSubstr("\"../../etc\" is refused: its name holds"));
  EXPECT_THAT(complaint(patched(good, 0, "/etc/a") + kEnd), HasSubstr("its name is absolute"));
  EXPECT_THAT(complaint(patched(good, 0, "\xFF") + kEnd), HasSubstr("no UTF-8"));
}

}  // namespace
}  // namespace lockstep::shards
