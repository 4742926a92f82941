// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/batcher.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/thread.h"

namespace lockstep::serving {

namespace {

constexpr int64_t kRowsBesideOthers = 4;  // of a batch beside those of other runners: the next ones are soon served too

}  // namespace

class Batcher::Inside {
 public:
  Inside(const BatcherOptions& options, Run run) : options_(options), run_(std::move(run)) {
    for (int64_t i = 0; i < std::max<int64_t>(1, options.threads); ++i) {
      threads_.emplace_back([this] { prepare_until_end(); });
    }
    for (int64_t i = 0; i < options.runners; ++i) {
      threads_.emplace_back([this] { run_until_end(); });
    }
  }

  ~Inside() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    threads_.clear();  // joins
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  bool submit(std::shared_ptr<Work> work) {
    {
      const std::lock_guard lock(mutex_);
      if (counts_.under_way >= options_.max_works) {
        ++counts_.refused;
        return false;
      }
      ++counts_.under_way;
      waiting_.push_back(std::move(work));
    }
    changed_.notify_all();
    return true;
  }

  BatcherCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  const BatcherOptions& options() const { return options_; }

 private:
  using Works = std::vector<std::shared_ptr<Work>>;
  struct Ready {
    std::shared_ptr<Work> work;
    std::chrono::steady_clock::time_point since;
  };

  static void begin_thread(const char* name) {
    ::pthread_setname_np(::pthread_self(), name);
    base::leave_signals_to_others();
  }

  void prepare_until_end() {
    begin_thread("prepare");
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::shared_ptr<Work> work = std::move(waiting_.front());
      waiting_.pop_front();
      ++num_preparing_;
      lock.unlock();
      const std::exception_ptr wrong = attempt([&] {
        if (work->is_late()) throw std::runtime_error("its time was over before its turn came");
        work->prepare();
      });
      lock.lock();
      --num_preparing_;
      if (!wrong) ready_.push_back({std::move(work), std::chrono::steady_clock::now()});
      changed_.notify_all();
      if (wrong) end({work}, wrong, lock);
    }
  }

  void run_until_end() {
    begin_thread("network");
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !ready_.empty() || (is_ending_ && !is_coming()); });
      if (ready_.empty()) return;
      if (options_.runners == 1) {
        changed_.wait_until(lock, ready_.front().since + options_.budget, [&] { return !is_coming() || is_full(); });
      }
      const Works batch = take();
      ++num_running_;
      lock.unlock();
      const double start = base::steady_seconds();
      const std::exception_ptr wrong = attempt([&] { run_(batch); });
      const double seconds = base::steady_seconds() - start;
      lock.lock();
      --num_running_;
      counts_.run_seconds += seconds;
      ++counts_.batches;
      for (const auto& work : batch) counts_.rows += work->rows();
      end(batch, wrong, lock);
    }
  }

  bool is_coming() const { return !waiting_.empty() || num_preparing_ > 0; }

  int64_t ready_rows() const {
    int64_t rows = 0;
    for (const auto& ready : ready_) rows += ready.work->rows();
    return rows;
  }
  bool is_full() const { return ready_rows() >= options_.max_rows; }

  // The oldest work, and what may go with it: this runner's share.
  Works take() {
    Works batch;
    const int64_t idle = options_.runners - num_running_;
    const int64_t limit = options_.runners == 1 ? options_.max_rows : std::min(kRowsBesideOthers, options_.max_rows);
    const int64_t most = std::min(limit, (ready_rows() + idle - 1) / idle);
    int64_t rows = 0;
    const Work::Kind kind = ready_.front().work->kind();
    for (auto it = ready_.begin(); it != ready_.end();) {
      const int64_t more = it->work->rows();
      if (it->work->kind() != kind || (rows > 0 && rows + more > most)) {
        ++it;
        continue;
      }
      rows += more;
      batch.push_back(std::move(it->work));
      it = ready_.erase(it);
    }
    return batch;
  }

  // Counted before it is answered: whoever has an answer finds room for the next request.
  void end(const Works& works, const std::exception_ptr& wrong, std::unique_lock<std::mutex>& lock) {
    counts_.under_way -= std::ssize(works);
    lock.unlock();
    for (const auto& work : works) {
      const std::exception_ptr why = wrong ? wrong : attempt([&] { work->finish(); });
      if (!why) continue;
      try {
        std::rethrow_exception(why);
      } catch (const std::exception& error) {
        work->fail(error);
      }
    }
    lock.lock();
  }

  static std::exception_ptr attempt(const std::function<void()>& what) {
    try {
      what();
      return nullptr;
    } catch (const std::exception&) {
      return std::current_exception();
    }
  }

  const BatcherOptions options_;
  const Run run_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Work>> waiting_;
  std::deque<Ready> ready_;
  int64_t num_preparing_ = 0;
  int64_t num_running_ = 0;
  BatcherCounts counts_;
  bool is_ending_ = false;
  std::vector<std::jthread> threads_;
};

Batcher::Batcher(const BatcherOptions& options, Run run) : inside_(std::make_unique<Inside>(options, std::move(run))) {}
Batcher::~Batcher() = default;

bool Batcher::submit(std::shared_ptr<Work> work) {
  return inside_->submit(std::move(work));
}
BatcherCounts Batcher::counts() const {
  return inside_->counts();
}
const BatcherOptions& Batcher::options() const {
  return inside_->options();
}

}  // namespace lockstep::serving
