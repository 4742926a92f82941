// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/store.h"
#include "lockstep/shards/small_shards.h"
#include "lockstep/shards/tar.h"

namespace lockstep::loader {
namespace {

using base::text;
using testing::HasSubstr;

class ShardCollectionTest : public testing::Test {
 protected:
  shards::SmallShards shards_;
};

TEST_F(ShardCollectionTest, ReadsEverySampleOfEveryShard) {
  const Collection all = scan_folder(shards_.folder.path().string() + "/");
  EXPECT_EQ(all.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(all.samples.size(), 5u);
  const auto store = open_store(all);
  std::vector<std::byte> memory;
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all.samples[static_cast<size_t>(i)].label, i % 2);
    const auto bytes = store->read(i, memory);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              shards_.images[static_cast<size_t>(i)]);
    EXPECT_EQ(store->name(i), text(shards_.folder.path().string(), "/shard-00000", i / 3, ".tar/0000", i, "-pet.jpg"));
    EXPECT_EQ(store->locate(i).offset % shards::kTarBlock, 0);
  }
}

TEST_F(ShardCollectionTest, ShardsMayBeMoreThanAShellAllowsFiles) {
  const Collection all = scan_folder(shards_.folder.path().string());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/dev/null", O_RDONLY);
  ::close(next);
  const rlimit one{static_cast<rlim_t>(next) + 1, before.rlim_max};  // room for one of the two shards
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one), 0);
  std::vector<std::byte> memory;
  EXPECT_EQ(open_store(all)->read(4, memory).size(), shards_.images[4].size());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(ShardCollectionTest, LoaderGivesTheSamePixelsFromShardsAndFromFiles) {
  const base::TemporaryFolder plain;
  const Collection stored = scan_folder(shards_.folder.path().string());
  Collection files{.root = plain.path().string(), .classes = {"cat", "dog"}};
  for (size_t i = 0; i < shards_.images.size(); ++i) {
    const base::Path path = plain.path() / text(i, ".jpg");
    base::write_file(path, shards_.images[i]);
    files.samples.push_back({path.string(), static_cast<int32_t>(i % 2)});
  }
  LoaderOptions options;
  options.data.image_size = 16;
  options.global_batch = 5;
  const Batch from_shards = make_loader(stored, options, {})->next();
  const Batch from_files = make_loader(files, options, {})->next();
  for (const char* name : {"image", "label"}) EXPECT_EQ(from_shards.field(name).bytes, from_files.field(name).bytes);
}

TEST_F(ShardCollectionTest, NamesTheSampleWhoseBitFlipped) {
  const Collection all = scan_folder(shards_.folder.path().string());
  const auto store = open_store(all);
  const Location where = store->locate(4);
  std::string tar = base::read_file(shards_.folder.path() / "shard-000001.tar");
  tar[static_cast<size_t>(where.offset + 100)] ^= 4;
  std::ofstream(shards_.folder.path() / "shard-000001.tar", std::ios::binary) << tar;  // the same file
  std::vector<std::byte> memory;
  EXPECT_NO_THROW(store->read(3, memory));
  try {
    store->read(4, memory);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("shard-000001.tar/00004-pet.jpg: the bytes have changed"));
  }
}

TEST_F(ShardCollectionTest, LabelsByTheTrainingClasses) {
  const Collection all = scan_folder(shards_.folder.path().string(), {"bird", "cat", "dog"});
  EXPECT_EQ(all.samples[0].label, 1);
  EXPECT_EQ(all.samples[1].label, 2);
  EXPECT_THROW(scan_folder(shards_.folder.path().string(), {"bird", "cat"}), base::Error);
}

TEST_F(ShardCollectionTest, FingerprintFollowsTheContent) {
  const std::string before = scan_folder(shards_.folder.path().string()).fingerprint();
  EXPECT_EQ(scan_folder(shards_.folder.path().string()).fingerprint(), before);
  std::swap(shards_.images[0], shards_.images[2]);
  shards_.write_all();
  EXPECT_NE(scan_folder(shards_.folder.path().string()).fingerprint(), before);
}

TEST_F(ShardCollectionTest, SaysWhenSamplesHaveNoClass) {
  shards::ShardWriter writer(shards_.folder.path(), "shard-000000");
  writer.add({"boxes", shards::kNoLabel, 0}, {{"jpg", shards_.images[0]}});
  shards::write_shard_list(shards_.folder.path(), {"boxes", {"cat"}, {writer.finish()}});
  try {
    scan_folder(shards_.folder.path().string());
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("shard-000000.tar/boxes: the sample has no class"));
  }
  const Collection images = scan_images(shards_.folder.path().string());
  ASSERT_EQ(images.samples.size(), 1u);
  EXPECT_THAT(images.name_of(0), HasSubstr("shard-000000.tar/boxes.jpg"));
}

}  // namespace
}  // namespace lockstep::loader
