// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace lockstep::loader {

// What images in files of their own take while they are decoded, all threads together. Nobody knows their sizes before
// they are read: an image that does not fit beside those under way waits for them, and those that come later wait
// behind it, so that small ones do not keep a large one out for ever. Calls may come from any thread.
class DecodeMemory {
 public:
  explicit DecodeMemory(int64_t room) : room_(room) {}

  // So many bytes of it until the end of the scope. User error, without a path, for an image that is larger than all
  // the room. A thread holds one at a time.
  class Held {
   public:
    Held(DecodeMemory& from, int64_t bytes) : from_(from), bytes_(bytes) { from.take(bytes); }
    ~Held() { from_.give_back(bytes_); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    DecodeMemory& from_;
    int64_t bytes_;
  };

 private:
  void take(int64_t bytes);
  void give_back(int64_t bytes);

  const int64_t room_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable freed_;
  int64_t in_use_ = 0;
  int64_t turns_ = 0;      // given out
  int64_t next_turn_ = 0;  // of whoever is served next
};

}  // namespace lockstep::loader
