// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/most_checkpoints.h"

#include <gtest/gtest.h>

#include "lockstep/run/checkpoint.h"

namespace lockstep::run {
namespace {

// Counts the checkpoints, whole and begun, whenever one gets its name.
class CountingDisk : public Disk {
 public:
  explicit CountingDisk(base::Path folder) : folder_(std::move(folder)) {}
  uint64_t free_bytes(const base::Path& folder) override { return real_->free_bytes(folder); }
  void make_folder(const base::Path& path) override { real_->make_folder(path); }
  std::unique_ptr<DiskFile> create(const base::Path& path) override { return real_->create(path); }
  void rename(const base::Path& from, const base::Path& to) override {
    int64_t now = 0;
    for (const auto& item : std::filesystem::directory_iterator(folder_)) now += item.is_directory() ? 1 : 0;
    most_ = std::max(most_, now);
    real_->rename(from, to);
  }
  void sync_folder(const base::Path& path) override { real_->sync_folder(path); }
  void remove(const base::Path& path) override { real_->remove(path); }
  bool exists(const base::Path& path) override { return real_->exists(path); }
  std::vector<base::Path> list(const base::Path& folder) override { return real_->list(folder); }
  int64_t most() const { return most_; }

 private:
  base::Path folder_;
  int64_t most_ = 0;
  std::shared_ptr<Disk> real_ = real_disk();
};

int64_t most_of(int64_t steps, int64_t keep, int64_t best_step, int64_t milestone_steps) {
  const base::TemporaryFolder folder;
  const auto disk = std::make_shared<CountingDisk>(folder.path());
  CheckpointStore store(folder.path(), disk);
  for (int64_t step = 1; step <= steps; ++step) {
    Save save;
    save.step = step;
    save.state = base::Json::object();
    save.keep = keep;
    save.best = step == best_step;
    save.milestone_steps = milestone_steps;
    store.save(save);
  }
  return disk->most();
}

TEST(MostCheckpointsTest, IsWhatTheStoreKeepsWhileItWrites) {
  EXPECT_EQ(most_of(7, 2, 0, 0), most_checkpoints(2, false, 0));
  EXPECT_EQ(most_of(7, 2, 1, 0), most_checkpoints(2, true, 0));
  EXPECT_EQ(most_of(15, 2, 1, 4), most_checkpoints(2, true, 15 / 4));
  EXPECT_EQ(most_of(15, 1, 0, 4), most_checkpoints(1, false, 15 / 4));
  EXPECT_LE(most_of(12, 2, 12, 4), most_checkpoints(2, true, 12 / 4));
}

}  // namespace
}  // namespace lockstep::run
