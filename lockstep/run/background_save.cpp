// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/background_save.h"

#include <pthread.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/thread.h"

namespace lockstep::run {
void BackgroundSave::start(Save save) {
  base::ensure(!under_way(), "one save at a time");
  outcome_ = {.step = save.step, .best = save.best};
  for (const auto& part : save.parts) outcome_.bytes += part.bytes;
  start_thread([this, save = std::move(save)](std::stop_token stop) mutable {
    save.patience.stop = std::move(stop);
    base::Path folder = store_.save(save);
    outcome_.untidy = store_.untidy();
    for (const auto& partition : save.partitions) {
      std::error_code unknown;  // it is durable: that its size cannot be told fails nothing
      const auto bytes = std::filesystem::file_size(folder / partition, unknown);
      if (!unknown) outcome_.bytes += static_cast<int64_t>(bytes);
    }
    return folder;
  });
}

void BackgroundSave::start_partition(int64_t step, std::string token, CheckpointPart part) {
  base::ensure(!under_way(), "one save at a time");
  outcome_ = {.step = step, .best = false, .bytes = part.bytes};
  start_thread([this, token = std::move(token), part = std::move(part)](const std::stop_token&) {
    store_.write_partition(token, part);
    return base::Path();
  });
}

void BackgroundSave::start_thread(std::function<base::Path(std::stop_token)> write) {
  done_ = false;
  const double begin = base::steady_seconds();
  thread_ = std::jthread([this, begin, write = std::move(write)](std::stop_token stop) {
    base::leave_signals_to_others();
    try {
      outcome_.folder = write(std::move(stop));
    } catch (...) {  // whatever it is, the one who waits hears of it
      outcome_.failure = std::current_exception();
    }
    outcome_.seconds = base::steady_seconds() - begin;
    outcome_.processor_seconds = base::thread_processor_seconds();
    done_ = true;
  });
  ::pthread_setname_np(thread_.native_handle(), "checkpoint");
}

std::optional<BackgroundSave::Outcome> BackgroundSave::outcome() {
  if (!under_way() || !done_) return std::nullopt;
  return wait();
}

std::optional<BackgroundSave::Outcome> BackgroundSave::wait() {
  if (!under_way()) return std::nullopt;
  thread_.join();
  return std::move(outcome_);
}

}  // namespace lockstep::run
