// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/patient_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::loader {
namespace {

// A file server that does not answer, until it does.
struct Server {
  std::mutex mutex;
  std::condition_variable changed;
  bool answers = false;
  int hanging = 0;
};

class HungStore final : public Store {
 public:
  explicit HungStore(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  std::string path(int64_t) const override { return "image"; }
  Location locate(int64_t id) const override { return {.file = id}; }
  std::string name(int64_t) const override { return "image"; }
  std::span<const std::byte> read(int64_t, std::vector<std::byte>& memory) const override {
    std::unique_lock lock(server_->mutex);
    ++server_->hanging;
    server_->changed.notify_all();
    server_->changed.wait(lock, [this] { return server_->answers; });
    --server_->hanging;
    server_->changed.notify_all();
    return memory;
  }
  std::vector<std::span<const std::byte>> split(int64_t, std::span<const std::byte> bytes) const override {
    return {bytes};
  }

 private:
  std::shared_ptr<Server> server_;
};

class PatientLoaderTest : public ::testing::Test {
 protected:
  PatientLoaderTest() {
    collection_.classes = {"a", "b"};
    collection_.samples = {{"x", 0}, {"y", 1}};
    options_.data.image_size = 8;
    options_.global_batch = 2;
  }
  std::unique_ptr<Loader> hung_loader() {
    return make_waiting_loader(collection_, options_, {1, 0, 0}, std::make_unique<HungStore>(server_));
  }

  std::shared_ptr<Server> server_ = std::make_shared<Server>();
  Collection collection_{.root = "far away"};
  LoaderOptions options_;
};

TEST_F(PatientLoaderTest, WhoWaitsForABatchMayGiveUp) {
  std::atomic<int> asked{0};
  options_.give_up = [&] { return ++asked >= 2; };
  const auto loader = hung_loader();
  try {
    loader->next();
    FAIL() << "nothing can have come";
  } catch (const GaveUp& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_EQ(error.fix(), "does its file system still answer? ls 'far away'");
    EXPECT_NE(std::string(error.what()).find("no batch has come from far away"), std::string::npos) << error.what();
  }
  EXPECT_EQ(asked, 2);
  const std::lock_guard lock(server_->mutex);
  server_->answers = true;
  server_->changed.notify_all();
}

TEST_F(PatientLoaderTest, AThreadThatHangsInAReadIsLeftBehind) {
  EXPECT_FALSE(left_threads_behind());
  auto loader = with_bounded_end(hung_loader(), 0.01);
  {
    std::unique_lock lock(server_->mutex);
    server_->changed.wait_for(lock, std::chrono::seconds(60), [this] { return server_->hanging > 0; });
    ASSERT_GT(server_->hanging, 0);
  }
  loader.reset();  // returns
  EXPECT_TRUE(left_threads_behind());
  std::unique_lock lock(server_->mutex);
  EXPECT_GT(server_->hanging, 0);
  server_->answers = true;
  server_->changed.notify_all();
  server_->changed.wait_for(lock, std::chrono::seconds(60), [this] { return server_->hanging == 0; });
  lock.unlock();
  for (int i = 0; i < 6000 && left_threads_behind(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(left_threads_behind()) << "its read has come back";
}

TEST_F(PatientLoaderTest, WorkThatHangsIsLeftBehindToo) {
  int done = 0;
  do_patiently([&] { ++done; }, [] { return false; }, {"near"});
  EXPECT_EQ(done, 1);
  const auto refused = [] { throw base::Error(base::Blame::user, "no such folder"); };
  EXPECT_THROW(do_patiently(refused, [] { return false; }, {"near"}), base::Error);
  EXPECT_FALSE(left_threads_behind());
  const auto hang = [server = server_] {
    std::unique_lock lock(server->mutex);
    server->changed.wait(lock, [&] { return server->answers; });
  };
  try {
    do_patiently(hang, [] { return true; }, {"near", "far away"});
    FAIL() << "it cannot have ended";
  } catch (const GaveUp& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_EQ(error.fix(), "does its file system still answer? ls -- near 'far away'");
    EXPECT_NE(std::string(error.what()).find("near or far away has not answered for 0 s"), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(left_threads_behind());
  {
    const std::lock_guard lock(server_->mutex);
    server_->answers = true;
    server_->changed.notify_all();
  }
  for (int i = 0; i < 6000 && left_threads_behind(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(left_threads_behind()) << "its read has come back";
}

}  // namespace
}  // namespace lockstep::loader
