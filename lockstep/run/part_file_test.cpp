// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/part_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/run/background_save.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/faulty_disk.h"

namespace lockstep::run {
namespace {

CheckpointPart bytes_part(const std::string& name, const std::string& bytes) {
  return {name, static_cast<int64_t>(bytes.size()),
          [bytes](const Sink& sink) { sink(std::as_bytes(std::span(bytes.data(), bytes.size()))); }};
}

Save save_with_partitions(int64_t step, const std::string& token) {
  Save save;
  save.step = step;
  save.state = base::Json::object();
  save.parts.push_back(bytes_part("weights.safetensors", "abc"));
  save.partitions = {"optimizer-1.safetensors", "optimizer-2.safetensors"};
  save.token = token;
  save.patience.seconds = 60;
  return save;
}

TEST(PartFileTest, ACheckpointWaitsForThePartitionsOfOtherNodes) {
  const base::TemporaryFolder folder;
  std::vector<std::jthread> nodes;
  for (const char* number : {"1", "2"}) {
    nodes.emplace_back([&, number] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      write_partition(*real_disk(), folder.path(), "t1",
                      bytes_part(std::string("optimizer-") + number + ".safetensors", number));
    });
  }
  CheckpointStore store(folder.path());
  const auto saved = store.save(save_with_partitions(4, "t1"));
  EXPECT_EQ(base::read_file(saved / "optimizer-2.safetensors"), "2");
  EXPECT_EQ(damage(saved), "");
  EXPECT_EQ(base::read_json(saved / "manifest.json").at("format").as_int(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".partitions-t1"));
  std::filesystem::remove(saved / "optimizer-1.safetensors");
  EXPECT_THAT(damage(saved), testing::HasSubstr("optimizer-1.safetensors is missing"));
}

TEST(PartFileTest, APartitionThatCouldNotBeWrittenFailsTheSaveAndTheNextOneSucceeds) {
  const base::TemporaryFolder folder;
  CheckpointStore store(folder.path());
  FaultyDisk full(FaultyDisk::Fault::fail, 2, ENOSPC);  // folder, file, then the write
  EXPECT_THROW(write_partition(full, folder.path(), "t1", bytes_part("optimizer-1.safetensors", "12")), base::Error);
  write_partition(*real_disk(), folder.path(), "t1", bytes_part("optimizer-2.safetensors", "2"));
  try {
    store.save(save_with_partitions(4, "t1"));
    FAIL() << "saved";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("optimizer-1.safetensors was not written on another node"));
    EXPECT_THAT(error.what(), testing::HasSubstr("No space left"));
  }
  EXPECT_FALSE(store.newest().checkpoint);
  for (const char* name : {"optimizer-1.safetensors", "optimizer-2.safetensors"}) {
    write_partition(*real_disk(), folder.path(), "t2", bytes_part(name, "x"));
  }
  store.save(save_with_partitions(5, "t2"));
  EXPECT_EQ(store.newest().checkpoint->step, 5);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".partitions-t1"));
}

// A disk on which who commits is as fast as can be: behind the row the folder is gone.
class RemovedAtOnce : public FaultyDisk {
 public:
  RemovedAtOnce() : FaultyDisk(Fault::none, 0) {}
  void rename(const base::Path& from, const base::Path& to) override {
    FaultyDisk::rename(from, to);
    if (to.extension() == ".row") FaultyDisk::remove(to.parent_path());
  }
};

TEST(PartFileTest, AWriterDoesNotTouchWhatWasTakenFromIt) {
  const base::TemporaryFolder folder;
  RemovedAtOnce disk;
  write_partition(disk, folder.path(), "t1", bytes_part("optimizer-1.safetensors", "1"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".partitions-t1"));
}

TEST(PartFileTest, ANodeThatNeverWritesIsNamed) {
  const base::TemporaryFolder folder;
  Save save = save_with_partitions(4, "t1");
  save.patience.seconds = 0.05;
  try {
    CheckpointStore(folder.path()).save(save);
    FAIL() << "saved";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("the writer of optimizer-1.safetensors on another node"));
  }
}

TEST(PartFileTest, AWriterWithoutAPartIsNotWaitedForWhenTheProcessEnds) {
  const base::TemporaryFolder folder;
  Save save = save_with_partitions(4, "t1");
  save.patience = {.seconds = 600, .seconds_after_stop = 0.05};
  const auto begin = std::chrono::steady_clock::now();
  { BackgroundSave{CheckpointStore(folder.path())}.start(std::move(save)); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_FALSE(CheckpointStore(folder.path()).newest().checkpoint);
}

// With the parts of both other nodes; `node` is the disk of one of them, `first` that of who commits. False: somebody
// crashed, and what was not synced is lost.
bool saved_by_three(const base::Path& folder, int64_t step, const std::string& token, FaultyDisk& node,
                    const std::shared_ptr<FaultyDisk>& first) {
  bool whole = true;
  const auto unless_crashed = [&](FaultyDisk& disk, const std::function<void()>& act) {
    try {
      act();
    } catch (const PowerLost&) {
      disk.lose_unsynced();
      whole = false;
    } catch (const base::Error&) {  // it missed a part
      whole = false;
    }
  };
  write_partition(*real_disk(), folder, token, bytes_part("optimizer-1.safetensors", token));
  unless_crashed(node, [&] { write_partition(node, folder, token, bytes_part("optimizer-2.safetensors", token)); });
  Save save = save_with_partitions(step, token);
  save.patience.seconds = 0.03;
  unless_crashed(*first, [&] { CheckpointStore(folder, first).save(save); });
  return whole;
}

void expect_good(const base::Path& folder, int64_t at_least, int64_t act) {
  const auto found = CheckpointStore(folder).newest();
  ASSERT_TRUE(found.checkpoint) << act;
  EXPECT_GE(found.checkpoint->step, at_least) << act;
  EXPECT_TRUE(found.passed_over.empty()) << act;
  EXPECT_EQ(base::read_file(found.checkpoint->file("optimizer-1.safetensors")),
            base::read_file(found.checkpoint->file("optimizer-2.safetensors")))
      << act;
}

// Every act of one node's writer, and every act of the one that commits, is the last of its process.
TEST(PartFileTest, ACrashOfAnyWriterAtAnyActLeavesAGoodCheckpointAndTheNextSaveSucceeds) {
  using Fault = FaultyDisk::Fault;
  for (const bool first_crashes : {false, true}) {
    int64_t at = 0, crashes = 0;
    for (bool reached = true; reached; ++at) {
      const base::TemporaryFolder folder;
      const auto none = std::make_shared<FaultyDisk>(Fault::none, 0);
      ASSERT_TRUE(saved_by_three(folder.path(), 1, "t1", *none, none));
      const auto crashing = std::make_shared<FaultyDisk>(Fault::crash, at);
      const bool whole = first_crashes ? saved_by_three(folder.path(), 2, "t2", *none, crashing)
                                       : saved_by_three(folder.path(), 2, "t2", *crashing, none);
      crashes += whole ? 0 : 1;
      reached = crashing->acts() > at;
      expect_good(folder.path(), whole ? 2 : 1, at);
      ASSERT_TRUE(saved_by_three(folder.path(), 3, "t3", *none, none));
      expect_good(folder.path(), 3, at);
    }
    EXPECT_EQ(crashes, at - 1);
    EXPECT_GT(crashes, first_crashes ? 20 : 7);
  }
}

}  // namespace
}  // namespace lockstep::run
