// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/patient_loader.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread.h"

namespace lockstep::loader {
namespace {

// Work on a thread of its own, which holds it until it is done.
struct Work {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable ended;
  bool is_over = false;
  std::exception_ptr error;

  void run() {
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    error = thrown;
    is_over = true;
    ended.notify_all();
  }
};

// What has a thread that may still come back from its read. Never destroyed: there is no moment that is safe.
struct LeftBehind {
  std::mutex mutex;
  std::vector<std::unique_ptr<Loader>> loaders;
  std::vector<std::shared_ptr<Work>> works;
};

LeftBehind& left_behind() {
  static auto* const all = new LeftBehind;
  return *all;
}

class PatientLoader final : public Loader {
 public:
  PatientLoader(std::unique_ptr<Loader> loader, double seconds) : loader_(std::move(loader)), seconds_(seconds) {}
  ~PatientLoader() override {
    if (loader_->end_within(seconds_)) return;
    const std::lock_guard lock(left_behind().mutex);
    left_behind().loaders.push_back(std::move(loader_));
  }
  PatientLoader(const PatientLoader&) = delete;
  PatientLoader& operator=(const PatientLoader&) = delete;

  Batch next() override { return loader_->next(); }
  void recycle(Batch&& batch) override { loader_->recycle(std::move(batch)); }
  int64_t steps_per_epoch() const override { return loader_->steps_per_epoch(); }
  run::LoaderState state() const override { return loader_->state(); }
  PipelineSeconds pipeline_seconds() const override { return loader_->pipeline_seconds(); }
  int64_t num_threads() const override { return loader_->num_threads(); }
  ReadCounts reads() const override { return loader_->reads(); }
  std::vector<BadSample> bad_samples() const override { return loader_->bad_samples(); }
  std::vector<BadSample> left_out() const override { return loader_->left_out(); }
  bool end_within(double seconds) override { return loader_->end_within(seconds); }

 private:
  std::unique_ptr<Loader> loader_;
  const double seconds_;
};

}  // namespace

std::unique_ptr<Loader> with_bounded_end(std::unique_ptr<Loader> loader, double seconds) {
  return std::make_unique<PatientLoader>(std::move(loader), seconds);
}

void do_patiently(std::function<void()> work, const std::function<bool()>& give_up,
                  const std::vector<std::string>& folders) {
  constexpr std::chrono::milliseconds kLook{100};
  const auto under_way = std::make_shared<Work>();
  under_way->work = std::move(work);
  const double start = base::steady_seconds();
  std::thread([under_way] {
    base::leave_signals_to_others();
    ::pthread_setname_np(::pthread_self(), "patient work");
    under_way->run();
  }).detach();
  std::unique_lock lock(under_way->mutex);
  while (!under_way->ended.wait_for(lock, kLook, [&] { return under_way->is_over; })) {
    if (!give_up()) continue;
    lock.unlock();  // left_threads_behind() locks the two the other way round
    const std::lock_guard others(left_behind().mutex);
    left_behind().works.push_back(under_way);
    const auto waited = static_cast<int64_t>(base::steady_seconds() - start);
    throw GaveUp(base::Blame::machine,
                 base::text(base::join(folders, " or "), " has not answered for ", waited, " s: a read hangs"),
                 base::text("does its file system still answer? ls -- ", base::shell_words(folders)));
  }
  if (under_way->error) std::rethrow_exception(under_way->error);
}

bool left_threads_behind() {
  const std::lock_guard lock(left_behind().mutex);
  std::erase_if(left_behind().loaders, [](const auto& loader) { return loader->end_within(0); });
  std::erase_if(left_behind().works, [](const auto& work) {
    const std::lock_guard own(work->mutex);
    return work->is_over;
  });
  return !left_behind().loaders.empty() || !left_behind().works.empty();
}

}  // namespace lockstep::loader
