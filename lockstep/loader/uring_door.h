// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep::loader {

// Reads under way, for coroutines of one thread: co_await ring.read(...) gives the bytes that came, or -errno.
class ReadRing {
 public:
  struct Read {
    ReadRing& ring;
    int file;
    std::span<std::byte> into;
    int64_t offset;
    int64_t result = 0;
    std::coroutine_handle<> waiting = {};

    bool await_ready() { return ring.try_now(*this); }
    void await_suspend(std::coroutine_handle<> handle) {
      waiting = handle;
      ring.submit(*this);
    }
    int64_t await_resume() const { return result; }
  };

  virtual ~ReadRing() = default;
  Read read(int file, std::span<std::byte> into, int64_t offset) { return {*this, file, into, offset}; }
  // Waits for one read at least, if any is under way; goes on with those that were waiting for what is there.
  virtual void run_some() = 0;
  virtual int64_t num_under_way() const = 0;
  virtual const char* name() const = 0;

 protected:
  virtual bool try_now(Read& read) = 0;  // true: done already
  virtual void submit(Read& read) = 0;   // `read` stays where it is until it has been resumed
};

// io_uring with `depth` reads at once; null where the kernel or the container denies it or knows no such read
// (before 5.6), or this build lacks liburing.
std::unique_ptr<ReadRing> make_uring(int depth);

}  // namespace lockstep::loader
