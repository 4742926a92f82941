// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep::step {

// Does one piece of work on several threads at once: lane 0 is the caller's own, the others live as long as this, for
// numerical libraries keep pools and memory by thread. Each lane's operators compute with `threads_each` threads (the
// caller's are the caller's business).
class LaneThreads {
 public:
  LaneThreads(int64_t lanes, int64_t threads_each);
  ~LaneThreads();

  int64_t lanes() const;
  // Returns when work(0) .. work(lanes - 1) are all done; throws the error of the lowest lane that had one.
  void run(const std::function<void(int64_t lane)>& work);

 private:
  class Crew;
  std::unique_ptr<Crew> crew_;
};

}  // namespace lockstep::step
