// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/model_slot.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/base/thread.h"

namespace lockstep::serving {
namespace {

constexpr int kFirstTries = 5;  // a run that saves all the time still gets a server

}  // namespace

class ModelSlot::Inside {
 public:
  Inside(ModelSource source, std::chrono::milliseconds look_every, std::function<void(const std::string&)> say)
      : source_(std::move(source)), say_(std::move(say)) {
    for (int tries = 0; tries < kFirstTries; ++tries) {
      identity_ = source_.identity();
      current_ = source_.load();
      if (source_.identity() == identity_) break;
    }
    if (look_every.count() <= 0) return;
    thread_ = std::jthread([this, look_every](const std::stop_token& stop) {
      ::pthread_setname_np(::pthread_self(), "reload");
      base::leave_signals_to_others();
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any woken;
      while (!woken.wait_for(lock, stop, look_every, [&] { return stop.stop_requested(); })) look();
    });
  }

  std::shared_ptr<const ServedModel> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  void look() {
    const std::lock_guard looking(looking_);
    std::string seen;
    try {
      seen = source_.identity();
      if (seen == identity_) return;
      auto model = source_.load();
      if (source_.identity() != seen) return;  // perhaps the old tensors under the new version: the next look loads it
      identity_ = seen;
      if (model->version() == current()->version()) return;
      say_(
          base::text("model replaced: version ", model->version(), model->which().empty() ? "" : ", ", model->which()));
      const std::lock_guard lock(mutex_);
      current_ = std::move(model);
      ++reloads_;
    } catch (const std::exception& why) {
      ++failures_;
      say_(base::text("another model could not be loaded, the old one serves on: ", why.what()));
    }
    identity_ = seen;  // also of one that is bad: once is enough
  }

  ModelSource source_;
  std::function<void(const std::string&)> say_;
  std::mutex looking_;
  std::string identity_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ServedModel> current_;
  std::atomic<int64_t> reloads_ = 0;
  std::atomic<int64_t> failures_ = 0;
  std::jthread thread_;
};

ModelSlot::ModelSlot(ModelSource source, std::chrono::milliseconds look_every,
                     std::function<void(const std::string&)> say)
    : inside_(std::make_unique<Inside>(std::move(source), look_every, std::move(say))) {}
ModelSlot::~ModelSlot() = default;

std::shared_ptr<const ServedModel> ModelSlot::current() const {
  return inside_->current();
}
int64_t ModelSlot::reloads() const {
  return inside_->reloads_;
}
int64_t ModelSlot::failures() const {
  return inside_->failures_;
}
void ModelSlot::look_now() {
  inside_->look();
}

}  // namespace lockstep::serving
