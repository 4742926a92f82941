// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::shards {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string index_of_two() {
  ShardIndexBuilder builder;
  const std::vector<uint32_t> rows{10, 40, 90};
  IndexedSample first{.key = "00000000-cat", .label = 3, .content_hash = 77};
  first.image = IndexedImage{0, {image::ImageFormat::jpeg, 640, 480, 6}, true};
  first.row_offsets = rows;
  builder.add_sample(first);
  builder.add_member({"jpg", 512, 100, 11});
  builder.add_member({"cls", 1536, 1, 12});
  builder.add_sample({.key = "00000001-radar"});
  builder.add_member({"npy", 2560, 300, 13});
  return builder.bytes(10240, 99);
}

// Aligned, as a map is.
struct Aligned {
  explicit Aligned(const std::string& bytes) : words((bytes.size() + 7) / 8), size(bytes.size()) {
    std::memcpy(words.data(), bytes.data(), bytes.size());
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words)).first(size); }
  std::vector<uint64_t> words;
  size_t size;
};

TEST(ShardIndexTest, KnowsWhatDecodingALargeImageHolds) {
  const auto largest = [](const image::ImageInfo& info, bool progressive) {
    ShardIndexBuilder builder;
    IndexedSample sample{.key = "a"};
    sample.image = IndexedImage{0, info, progressive};
    builder.add_sample(sample);
    builder.add_member({"jpg", 512, 100, 11});
    const Aligned memory(builder.bytes(10240, 99));
    return ShardIndex(memory.bytes(), "x.sxi").largest_image();
  };
  EXPECT_EQ(largest({image::ImageFormat::jpeg, 100, 10, 1}, false), 3000);
  EXPECT_EQ(largest({image::ImageFormat::jpeg, 100, 10, 6}, false), 6000);
  EXPECT_EQ(largest({image::ImageFormat::jpeg, 100, 10, 1}, true), 9000);
  EXPECT_EQ(largest({image::ImageFormat::png, 100, 10, 1}, false), 7000);
}

TEST(ShardIndexTest, GivesBackWhatWasPutIn) {
  const Aligned memory(index_of_two());
  const ShardIndex index(memory.bytes(), "x.sxi");
  ASSERT_EQ(index.size(), 2);
  EXPECT_EQ(index.tar_bytes(), 10240);
  EXPECT_EQ(index.tar_crc32c(), 99u);
  const IndexedSample first = index.sample(0);
  EXPECT_EQ(first.key, "00000000-cat");
  EXPECT_EQ(first.label, 3);
  EXPECT_EQ(first.content_hash, 77u);
  EXPECT_EQ(first.image, (IndexedImage{0, {image::ImageFormat::jpeg, 640, 480, 6}, true}));
  EXPECT_THAT(first.row_offsets, ElementsAre(10, 40, 90));
  EXPECT_EQ(index.member(0, 1), (IndexedMember{"cls", 1536, 1, 12}));
  EXPECT_EQ(index.find(0, "jpg"), (IndexedMember{"jpg", 512, 100, 11}));
  EXPECT_EQ(index.find(0, "json"), std::nullopt);
  const IndexedSample second = index.sample(1);
  EXPECT_EQ(second.label, kNoLabel);
  EXPECT_EQ(second.image, std::nullopt);
  EXPECT_EQ(second.num_members, 1);
  EXPECT_EQ(index.member(1, 0), (IndexedMember{"npy", 2560, 300, 13}));
}

TEST(ShardIndexTest, NoticesEveryChangedOrMissingByte) {
  const std::string good = index_of_two();
  for (size_t i = 0; i < good.size(); ++i) {
    if (i >= 60 && i < 64) continue;  // reserved
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    const Aligned memory(bad);
    EXPECT_THROW(ShardIndex(memory.bytes(), "x.sxi"), base::Error) << i;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    const Aligned memory(good.substr(0, size));
    EXPECT_THROW(ShardIndex(memory.bytes(), "x.sxi"), base::Error) << size;
  }
}

TEST(ShardIndexTest, RefusesMembersOutsideOfTheShard) {
  ShardIndexBuilder builder;
  builder.add_sample({.key = "k"});
  builder.add_member({"jpg", 512, 100, 11});
  const Aligned memory(builder.bytes(600, 0));
  try {
    const ShardIndex index(memory.bytes(), "x.sxi");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("x.sxi: member 0 of sample 0 lies outside of the shard"));
  }
}

}  // namespace
}  // namespace lockstep::shards
