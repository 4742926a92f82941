// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/shard_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/tar.h"

namespace lockstep::shards {
namespace {

using base::text;

class ShardWriterTest : public testing::Test {
 protected:
  base::TemporaryFolder folder_;
  std::string first_ = image::encode_jpeg(image::Image(20, 24), 90);
  std::string second_ = image::with_restart_markers(std::as_bytes(std::span(first_.data(), first_.size())));
};

TEST_F(ShardWriterTest, TheTarFileAndBothIndexesTellTheSame) {
  ShardWriter writer(folder_.path(), "shard-000001");
  writer.add({"00000003-a", 1, 5}, {{"jpg", first_}, {"cls", "1"}});
  writer.add({"00000004-b", 0, 6}, {{"jpg", second_}, {"cls", "0"}});
  const ShardSummary summary = writer.finish();
  const std::string tar = base::read_file(folder_.path() / "shard-000001.tar");
  const ShardIndex index(folder_.path() / "shard-000001.sxi");
  EXPECT_EQ(summary, (ShardSummary{"shard-000001", 2, static_cast<int64_t>(tar.size()), base::crc32c(tar)}));
  EXPECT_EQ(tar.size() % kTarRecord, 0u);
  EXPECT_EQ(index.tar_crc32c(), base::crc32c(tar));
  TarReader reader(std::as_bytes(std::span(tar.data(), tar.size())), "shard");
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(index.sample(i).content_hash, static_cast<uint64_t>(5 + i));
    EXPECT_EQ(index.sample(i).row_offsets.size(), i == 0 ? 0u : 2u);
    for (int64_t k = 0; k < 2; ++k) {
      const IndexedMember member = index.member(i, k);
      const auto found = reader.next();
      ASSERT_TRUE(found);
      EXPECT_EQ(found->name, text(index.sample(i).key, ".", member.extension));
      EXPECT_EQ(found->offset, member.offset);
      EXPECT_EQ(found->size, member.size);
      EXPECT_EQ(base::crc32c(
                    std::string_view(tar).substr(static_cast<size_t>(member.offset), static_cast<size_t>(member.size))),
                member.crc32c);
    }
  }
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_THAT(
      base::read_file(folder_.path() / "shard-000001.idx"),
      testing::StartsWith(text("v1.2 2\njpg 512 ", first_.size(), " 00000003-a.jpg cls ",
                               1024 + padded_to_block(static_cast<int64_t>(first_.size())), " 1 00000003-a.cls\n")));
}

TEST_F(ShardWriterTest, AnUnfinishedShardLeavesNothingBehind) {
  {
    ShardWriter writer(folder_.path(), "shard-000009");
    writer.add({"k", 0, 0}, {{"jpg", first_}});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ShardWriterTest, ARefusedSampleLeavesNoTrace) {
  ShardWriter writer(folder_.path(), "s");
  writer.add({"a", 0, 0}, {{"jpg", first_}});
  EXPECT_THROW(writer.add({"b c", 0, 0}, {{"jpg", first_}}), base::Error);
  EXPECT_THROW(writer.add({"../b", 0, 0}, {{"jpg", first_}}), base::Error);
  EXPECT_THROW(writer.add({"b", 0, 0}, {{"jpg", "no image"}}), base::Error);
  EXPECT_EQ(writer.finish().num_samples, 1);
}

TEST_F(ShardWriterTest, TakesSamplesLargerThanItsBuffer) {
  const std::string large(9 << 20, 'x');
  ShardWriter writer(folder_.path(), "s");
  for (const char* key : {"a", "b"}) writer.add({key, kNoLabel, 0}, {{"npy", large}});
  const int64_t length = writer.finish().tar_bytes;
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(folder_.path() / "s.tar")), length);
  const ShardIndex index(folder_.path() / "s.sxi");
  EXPECT_EQ(index.member(1, 0).offset, 1024 + (9 << 20));
}

}  // namespace
}  // namespace lockstep::shards
