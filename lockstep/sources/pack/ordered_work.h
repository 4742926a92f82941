// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace lockstep::sources {

struct OrderedWorkOptions {
  int64_t threads = 1;
  int64_t ahead = 64;  // items that may be worked on beyond the one that is to be given out next: bounds the memory
};

// Runs make(i) for i = 0 .. count - 1 on several threads and gives each result to take(i, result) in order, one at a
// time, so that what take() writes does not depend on the number of threads. An exception ends all of
// it and is thrown from here: of several that make() throws the one of the earliest item, however the threads ran.
template <class Result>
void work_in_order(int64_t count, const OrderedWorkOptions& options, const std::function<Result(int64_t)>& make,
                   const std::function<void(int64_t, Result&&)>& take) {
  std::mutex mutex;
  std::condition_variable moved;
  int64_t next_made = 0, next_taken = 0;
  bool taking = false;
  std::exception_ptr error;
  int64_t error_item = count;
  const int64_t window = std::max<int64_t>(options.ahead, options.threads);
  std::vector<std::optional<Result>> ring(static_cast<size_t>(window));

  const auto give_out = [&](std::unique_lock<std::mutex>& lock) {
    taking = true;
    while (!error && next_taken < count && ring[static_cast<size_t>(next_taken % window)]) {
      Result result = std::move(*ring[static_cast<size_t>(next_taken % window)]);
      ring[static_cast<size_t>(next_taken % window)].reset();
      lock.unlock();
      try {
        take(next_taken, std::move(result));
        lock.lock();
      } catch (...) {
        lock.lock();
        if (!error || next_taken < error_item) {
          error = std::current_exception();
          error_item = next_taken;
        }
      }
      ++next_taken;
      moved.notify_all();
    }
    taking = false;
  };
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (true) {
      moved.wait(lock, [&] { return error || next_made >= count || next_made < next_taken + window; });
      if (error || next_made >= count) return;
      const int64_t i = next_made++;
      lock.unlock();
      std::optional<Result> result;
      std::exception_ptr wrong;
      try {
        result.emplace(make(i));
      } catch (...) {
        wrong = std::current_exception();
      }
      lock.lock();
      if (wrong) {
        if (!error || i < error_item) {  // all earlier items were begun earlier: theirs come here as well
          error = wrong;
          error_item = i;
        }
        moved.notify_all();
        return;
      }
      ring[static_cast<size_t>(i % window)] = std::move(result);
      if (!taking) give_out(lock);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 1; i < options.threads; ++i) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace lockstep::sources
