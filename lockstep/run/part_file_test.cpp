// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/part_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/faulty_disk.h"

namespace lockstep::run {
namespace {

CheckpointPart bytes_part(const std::string& name, const std::string& bytes) {
  return {name, static_cast<int64_t>(bytes.size()),
          [bytes](const Sink& sink) { sink(std::as_bytes(std::span(bytes.data(), bytes.size()))); }};
}

Save save_with_shards(int64_t step, const std::string& token) {
  Save save;
  save.step = step;
  save.state = base::Json::object();
  save.parts.push_back(bytes_part("weights.safetensors", "abc"));
  save.shards = {"optimizer-1.safetensors", "optimizer-2.safetensors"};
  save.token = token;
  save.patience_seconds = 5;
  return save;
}

TEST(PartFileTest, ACheckpointWaitsForTheShardsOfOtherNodes) {
  const base::TemporaryFolder folder;
  std::vector<std::jthread> nodes;
  for (const char* number : {"1", "2"}) {
    nodes.emplace_back([&, number] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      write_shard(*real_disk(), folder.path(), "t1",
                  bytes_part(std::string("optimizer-") + number + ".safetensors", number));
    });
  }
  CheckpointStore store(folder.path());
  const auto place = store.save(save_with_shards(4, "t1"));
  EXPECT_EQ(base::read_file(place / "optimizer-2.safetensors"), "2");
  EXPECT_EQ(damage(place), "");
  EXPECT_EQ(base::read_json(place / "manifest.json").at("format").as_int(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".shards-t1"));
  std::filesystem::remove(place / "optimizer-1.safetensors");
  EXPECT_THAT(damage(place), testing::HasSubstr("optimizer-1.safetensors is missing"));
}

TEST(PartFileTest, AShardThatCouldNotBeWrittenFailsTheSaveAndTheNextOneSucceeds) {
  const base::TemporaryFolder folder;
  CheckpointStore store(folder.path());
  FaultyDisk full(FaultyDisk::Fault::fail, 2, ENOSPC);  // folder, file, then the write
  EXPECT_THROW(write_shard(full, folder.path(), "t1", bytes_part("optimizer-1.safetensors", "12")), base::Error);
  write_shard(*real_disk(), folder.path(), "t1", bytes_part("optimizer-2.safetensors", "2"));
  try {
    store.save(save_with_shards(4, "t1"));
    FAIL() << "saved";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("optimizer-1.safetensors was not written on another node"));
    EXPECT_THAT(error.what(), testing::HasSubstr("No space left"));
  }
  EXPECT_FALSE(store.newest().checkpoint);
  for (const char* name : {"optimizer-1.safetensors", "optimizer-2.safetensors"}) {
    write_shard(*real_disk(), folder.path(), "t2", bytes_part(name, "x"));
  }
  store.save(save_with_shards(5, "t2"));
  EXPECT_EQ(store.newest().checkpoint->step, 5);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".shards-t1"));
}

TEST(PartFileTest, ANodeThatNeverWritesIsNamed) {
  const base::TemporaryFolder folder;
  Save save = save_with_shards(4, "t1");
  save.patience_seconds = 0.05;
  try {
    CheckpointStore(folder.path()).save(save);
    FAIL() << "saved";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("the writer of optimizer-1.safetensors on another node"));
  }
}

}  // namespace
}  // namespace lockstep::run
