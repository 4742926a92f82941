// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/shard_set.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/collection.h"
#include "lockstep/data/decode.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/store.h"
#include "lockstep/data/tar.h"

namespace lockstep::data {
namespace {

using base::text;
using testing::HasSubstr;

// Five pictures in two shards, labels 0 1 0 1 0.
class ShardSetTest : public testing::Test {
 protected:
  ShardSetTest() {
    for (int i = 0; i < 5; ++i) {
      Image image(20 + i, 24);
      base::Random random(3, 0, static_cast<uint64_t>(i));
      for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits());
      pictures_.push_back(encode_jpeg(image, 90));
    }
    write_shard_list(folder_.path(),
                     {"tiny train", {"cat", "dog"}, {write("shard-000000", 0, 3), write("shard-000001", 3, 5)}});
  }

  ShardSummary write(const std::string& name, int begin, int end) {
    ShardWriter writer(folder_.path(), name);
    for (int i = begin; i < end; ++i) {
      const std::string label = std::to_string(i % 2);
      writer.add({text("0000", i, "-pet"), i % 2, 100u + static_cast<unsigned>(i)},
                 {{"jpg", pictures_[static_cast<size_t>(i)]}, {"cls", label}});
    }
    return writer.finish();
  }

  std::string complaint() const {
    try {
      const ShardSet set(folder_.path());
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.what();
    }
    return "no complaint";
  }

  base::TemporaryFolder folder_;
  std::vector<std::string> pictures_;
};

TEST_F(ShardSetTest, ReadsEverySampleOfEveryShard) {
  const Collection all = scan_folder(folder_.path().string() + "/");
  EXPECT_EQ(all.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(all.samples.size(), 5u);
  const auto store = open_store(all);
  std::vector<std::byte> memory;
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all.samples[static_cast<size_t>(i)].label, i % 2);
    const auto bytes = store->read(i, memory);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              pictures_[static_cast<size_t>(i)]);
    EXPECT_EQ(store->name(i), text(folder_.path().string(), "/shard-00000", i / 3, ".tar/0000", i, "-pet.jpg"));
    EXPECT_EQ(store->locate(i).offset % kTarBlock, 0);
  }
}

TEST_F(ShardSetTest, ShardsMayBeMoreThanAShellAllowsFiles) {
  const Collection all = scan_folder(folder_.path().string());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/dev/null", O_RDONLY);
  ::close(next);
  const rlimit one{static_cast<rlim_t>(next) + 1, before.rlim_max};  // room for one of the two shards
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one), 0);
  std::vector<std::byte> memory;
  EXPECT_EQ(open_store(all)->read(4, memory).size(), pictures_[4].size());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(ShardSetTest, LoaderGivesTheSamePixelsFromShardsAndFromFiles) {
  const base::TemporaryFolder plain;
  const Collection shards = scan_folder(folder_.path().string());
  Collection files{.root = plain.path().string(), .classes = {"cat", "dog"}};
  for (size_t i = 0; i < pictures_.size(); ++i) {
    const base::Path path = plain.path() / text(i, ".jpg");
    base::write_file(path, pictures_[i]);
    files.samples.push_back({path.string(), static_cast<int32_t>(i % 2)});
  }
  LoaderOptions options;
  options.data.image_size = 16;
  options.global_batch = 5;
  const Batch from_shards = make_loader(shards, options, {})->next();
  const Batch from_files = make_loader(files, options, {})->next();
  EXPECT_EQ(from_shards.images, from_files.images);
  EXPECT_EQ(from_shards.targets, from_files.targets);
}

TEST_F(ShardSetTest, NamesTheSampleWhoseBitFlipped) {
  const Collection all = scan_folder(folder_.path().string());
  const auto store = open_store(all);
  const Location where = store->locate(4);
  std::string tar = base::read_file(folder_.path() / "shard-000001.tar");
  tar[static_cast<size_t>(where.offset + 100)] ^= 4;
  base::FileWriter(folder_.path() / "shard-000001.tar", base::FileWriter::Mode::truncate).write(tar);
  std::vector<std::byte> memory;
  EXPECT_NO_THROW(store->read(3, memory));
  try {
    store->read(4, memory);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("shard-000001.tar/00004-pet.jpg: the bytes have changed"));
  }
}

TEST_F(ShardSetTest, LabelsByTheTrainingClasses) {
  const Collection all = scan_folder(folder_.path().string(), {"bird", "cat", "dog"});
  EXPECT_EQ(all.samples[0].label, 1);
  EXPECT_EQ(all.samples[1].label, 2);
  EXPECT_THROW(scan_folder(folder_.path().string(), {"bird", "cat"}), base::Error);
}

TEST_F(ShardSetTest, FingerprintFollowsTheContent) {
  const std::string before = scan_folder(folder_.path().string()).fingerprint();
  EXPECT_EQ(scan_folder(folder_.path().string()).fingerprint(), before);
  std::swap(pictures_[0], pictures_[2]);
  write_shard_list(folder_.path(),
                   {"tiny train", {"cat", "dog"}, {write("shard-000000", 0, 3), write("shard-000001", 3, 5)}});
  EXPECT_NE(scan_folder(folder_.path().string()).fingerprint(), before);
}

TEST_F(ShardSetTest, NamesWhatIsMissingOrOfAnotherLength) {
  base::FileWriter(folder_.path() / "shard-000001.tar", base::FileWriter::Mode::append).write("x");
  EXPECT_THAT(complaint(), HasSubstr("shard-000001.tar: "));
  std::filesystem::remove(folder_.path() / "shard-000001.tar");
  EXPECT_THAT(complaint(), HasSubstr("shard-000001.tar: the shard is missing"));
  std::filesystem::remove(folder_.path() / "shard-000000.sxi");
  EXPECT_THAT(complaint(), HasSubstr("shard-000000.sxi: there is no such file"));
}

TEST_F(ShardSetTest, RefusesAListThatLeadsOutOfItsFolder) {
  base::write_file(folder_.path() / kShardList, R"({"classes": [], "shardlist": [{"url": "../shard-000000.tar"}]})");
  EXPECT_THAT(complaint(), HasSubstr("\"../shard-000000.tar\" is no NAME.tar beside the list"));
}

TEST_F(ShardSetTest, SaysWhenSamplesHaveNoClass) {
  ShardWriter writer(folder_.path(), "shard-000000");
  writer.add({"boxes", kNoLabel, 0}, {{"jpg", pictures_[0]}});
  write_shard_list(folder_.path(), {"boxes", {"cat"}, {writer.finish()}});
  try {
    scan_folder(folder_.path().string());
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("shard-000000.tar/boxes: the sample has no class"));
  }
  const Collection pictures = scan_pictures(folder_.path().string());
  ASSERT_EQ(pictures.samples.size(), 1u);
  EXPECT_THAT(pictures.name_of(0), HasSubstr("shard-000000.tar/boxes.jpg"));
}

}  // namespace
}  // namespace lockstep::data
