// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/training/short_run.h"
#include "lockstep/watching/run_watch.h"

// Runs in which one part was really made slow, by a factor that no busy machine hides: is it found and named?
namespace lockstep::training {
namespace {

using testing::HasSubstr;

watching::Slowness why_slow(const base::Path& run) {
  watching::RunWatch watch({run});
  watch.poll();
  return watch.slowness();
}

spec::Job quick_job() {
  spec::Job job = short_job();
  job.data.validate.clear();
  job.data.image_size = 8;
  job.checkpoint.every_epochs = 0;
  return job;
}

// Waits before every file, and for no disk: a stall of the real one is no part of what these runs are slow in.
class CalmDisk : public run::Disk {
 public:
  explicit CalmDisk(std::chrono::milliseconds wait = {}) : wait_(wait) {}
  uint64_t free_bytes(const base::Path& folder) override { return real_->free_bytes(folder); }
  void make_folder(const base::Path& path) override { real_->make_folder(path); }
  std::unique_ptr<run::DiskFile> create(const base::Path& path) override {
    std::this_thread::sleep_for(wait_);
    return std::make_unique<File>(real_->create(path));
  }
  void rename(const base::Path& from, const base::Path& to) override { real_->rename(from, to); }
  void sync_folder(const base::Path& /*path*/) override {}
  void remove(const base::Path& path) override { real_->remove(path); }
  bool exists(const base::Path& path) override { return real_->exists(path); }
  std::vector<base::Path> list(const base::Path& folder) override { return real_->list(folder); }

 private:
  class File : public run::DiskFile {
   public:
    explicit File(std::unique_ptr<run::DiskFile> real) : real_(std::move(real)) {}
    void write(std::span<const std::byte> bytes) override { real_->write(bytes); }
    void sync() override {}
    void close() override { real_->close(); }

   private:
    std::unique_ptr<run::DiskFile> real_;
  };

  std::shared_ptr<run::Disk> real_ = run::real_disk();
  std::chrono::milliseconds wait_;
};

TEST(SlowRunsTest, LargeImagesAndOneLoaderThread) {
  const base::TemporaryFolder folder;
  image::Image large(2400, 1800);
  for (size_t i = 0; i < large.pixels.size(); ++i) large.pixels[i] = static_cast<uint8_t>((i * 7919) >> 5);
  const std::string bytes = image::encode_jpeg(large, 90);
  for (int i = 0; i < 6; ++i) {
    const base::Path name = folder.path() / "data" / (i % 2 == 0 ? "a" : "b") / base::text(i, ".jpg");
    base::make_folders(name.parent_path());
    base::write_file(name, bytes);
  }
  spec::Job job = quick_job();
  job.data.train = (folder.path() / "data").string();
  job.data.samples = 0;
  job.model.classes = 0;
  job.model.name = "linear";
  job.model.width = 0;
  job.training.global_batch = 2;
  train_in(folder.path() / "run", job);
  const auto found = why_slow(folder.path() / "run").findings.at(0);
  EXPECT_EQ(found.part, "data") << found.what;
  EXPECT_GT(found.share, 0.5);
  EXPECT_THAT(found.what, HasSubstr("decode takes"));
  EXPECT_THAT(found.what, HasSubstr("on 1 thread"));
}

TEST(SlowRunsTest, AnEvaluationAfterEveryStep) {
  const base::TemporaryFolder folder;
  spec::Job job = quick_job();
  job.data.validate = "synthetic";
  job.data.samples = 2000;
  job.training.global_batch = 2;
  job.training.epochs = 0;
  job.training.steps = 6;
  job.evaluation.every_steps = 1;
  TrainOptions options;
  options.run = folder.path() / "run";
  options.disk = std::make_shared<CalmDisk>();
  train(job, options, *comm::single_group());
  const auto found = why_slow(folder.path() / "run").findings.at(0);
  EXPECT_EQ(found.part, "evaluation") << found.what;
  EXPECT_GT(found.share, 0.5);
  EXPECT_THAT(found.setting, HasSubstr("evaluation.every_steps="));
  EXPECT_GT(found.gain, 0.4);
}

TEST(SlowRunsTest, ASaveAfterEveryStep) {
  const base::TemporaryFolder folder;
  spec::Job job = quick_job();
  job.data.samples = 32;
  job.training.global_batch = 8;
  job.checkpoint.every_epochs = 0.25;
  TrainOptions options;
  options.run = folder.path() / "run";
  options.disk = std::make_shared<CalmDisk>(std::chrono::milliseconds(100));
  train(job, options, *comm::single_group());
  const auto found = why_slow(folder.path() / "run").findings.at(0);
  EXPECT_EQ(found.part, "save") << found.what;
  EXPECT_GT(found.share, 0.5);
  EXPECT_EQ(found.setting, "checkpoint.every_epochs=0");
  EXPECT_GT(found.gain, 0.4);
}

TEST(SlowRunsTest, OneRankThatIsSlowerThanTheOthers) {
  const base::TemporaryFolder folder;
  spec::Job job = quick_job();
  job.data.samples = 80;
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    TrainOptions options;
    options.run = folder.path() / "run";
    options.disk = std::make_shared<CalmDisk>();
    options.stop = [slow = group.rank() == 2] {
      if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return std::string();
    };
    train(job, options, group);
  });
  const auto found = why_slow(folder.path() / "run").findings.at(0);
  EXPECT_EQ(found.part, "rank") << found.what;
  EXPECT_THAT(found.what, HasSubstr("rank 2 on "));
  EXPECT_GT(found.share, 0.4);
}

}  // namespace
}  // namespace lockstep::training
