// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/pread_ring.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/loader/quiet_thread.h"

namespace lockstep::loader {
namespace {

constexpr size_t kMostThreads = 16;  // each waits for the file system most of the time

class PreadRing final : public ReadRing {
 public:
  explicit PreadRing(int depth) : most_threads_(std::clamp<size_t>(static_cast<size_t>(depth), 1, kMostThreads)) {}

  void run_some() override {
    if (num_under_way_ == 0) return;
    std::vector<Read*> done;
    {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return !done_.empty(); });
      done = std::exchange(done_, {});
    }
    num_under_way_ -= static_cast<int64_t>(done.size());
    for (Read* read : done) read->waiting.resume();
  }
  int64_t num_under_way() const override { return num_under_way_; }
  const char* name() const override { return "pread"; }

 protected:
  bool try_now(Read&) override { return false; }
  void submit(Read& read) override {
    ++num_under_way_;
    const std::lock_guard lock(mutex_);
    pending_.push_back(&read);
    if (pending_.size() > num_idle_ && threads_.size() < most_threads_) add_thread();
    submitted_.notify_one();
    if (!threads_.empty()) return;
    pending_.pop_back();  // no thread is to be had: one read after the other
    read.result = pread_now(read);
    done_.push_back(&read);
  }

 private:
  static int64_t pread_now(const Read& read) {
    const ssize_t got = ::pread(read.file, read.into.data(), read.into.size(), read.offset);
    return got < 0 ? -errno : got;
  }

  // Or not, where the system has no more: those that are there do the work.
  void add_thread() {
    try {
      threads_.emplace_back([this, number = threads_.size()](const std::stop_token& stop) {
        settle_quiet_thread(base::text("ls-pread-", number));
        work(stop);
      });
    } catch (const std::system_error&) {
    }
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
      ++num_idle_;
      submitted_.wait(lock, stop, [this] { return !pending_.empty(); });
      --num_idle_;
      if (pending_.empty()) return;  // stopped
      Read& read = *pending_.front();
      pending_.pop_front();
      lock.unlock();
      const int64_t result = pread_now(read);
      lock.lock();
      read.result = result;
      done_.push_back(&read);
      posted_.notify_one();
    }
  }

  const size_t most_threads_;
  int64_t num_under_way_ = 0;  // the caller's; so are `pending_` and `done_` together

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any submitted_;
  std::condition_variable posted_;
  std::deque<Read*> pending_;
  std::vector<Read*> done_;
  size_t num_idle_ = 0;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace

std::unique_ptr<ReadRing> make_pread_ring(int depth) {
  return std::make_unique<PreadRing>(depth);
}

}  // namespace lockstep::loader
