// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/lane_threads.h"

#include <ATen/Parallel.h>
#include <pthread.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/base/text.h"

namespace lockstep::step {

class LaneThreads::Workers {
 public:
  Workers(int64_t lanes, int64_t threads_each) : errors_(static_cast<size_t>(lanes)) {
    for (int64_t lane = 1; lane < lanes; ++lane) {
      threads_.emplace_back([=, this](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), base::text("ls-slice-", lane).substr(0, 15).c_str());
        at::set_num_threads(static_cast<int>(threads_each));
        serve(lane, stop);
      });
    }
  }
  ~Workers() {
    for (auto& thread : threads_) thread.request_stop();
    threads_.clear();  // joins, before what the threads use is gone
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int64_t lanes() const { return static_cast<int64_t>(errors_.size()); }

  void run(const std::function<void(int64_t)>& work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      ++round_;
      busy_ = static_cast<int64_t>(threads_.size());
    }
    called_.notify_all();
    attempt(0, work, round_);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    for (auto& error : errors_) {
      if (error) std::rethrow_exception(std::exchange(error, nullptr));
    }
  }

 private:
  void serve(int64_t lane, const std::stop_token& stop) {
    int64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (called_.wait(lock, stop, [&] { return round_ > seen; })) {
      seen = round_;
      const auto& work = *work_;
      lock.unlock();
      attempt(lane, work, seen);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  // What a library sets up at its first call, two threads must not set up at once: of 350 runs on two lanes one had
  // another rounding in its first step, and only there. So the lanes of the first round go one after the other.
  void attempt(int64_t lane, const std::function<void(int64_t)>& work, int64_t round) {
    std::unique_lock alone(first_, std::defer_lock);
    if (round == 1) alone.lock();
    try {
      work(lane);
    } catch (...) {
      errors_[static_cast<size_t>(lane)] = std::current_exception();  // each lane its own place
    }
  }

  std::vector<std::exception_ptr> errors_;
  std::mutex first_;
  std::mutex mutex_;  // guards what follows, up to the threads
  std::condition_variable_any called_;
  std::condition_variable done_;
  const std::function<void(int64_t)>* work_ = nullptr;
  int64_t round_ = 0;
  int64_t busy_ = 0;
  std::vector<std::jthread> threads_;
};

LaneThreads::LaneThreads(int64_t lanes, int64_t threads_each)
    : workers_(std::make_unique<Workers>(lanes, threads_each)) {}
LaneThreads::~LaneThreads() = default;

int64_t LaneThreads::lanes() const {
  return workers_->lanes();
}

void LaneThreads::run(const std::function<void(int64_t lane)>& work) {
  workers_->run(work);
}

}  // namespace lockstep::step
