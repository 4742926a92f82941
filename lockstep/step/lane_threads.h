// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep::step {

// Runs the same work on several threads at once. Lane 0 is the calling thread; the others live as long as this object,
// because numerical libraries keep pools and memory by thread. The operators of each lane use `threads_each` threads;
// those of lane 0 are set by the caller.
class LaneThreads {
 public:
  LaneThreads(int64_t lanes, int64_t threads_each);
  ~LaneThreads();

  int64_t lanes() const;
  // Returns when work(0) .. work(lanes - 1) are all done; throws the error of the lowest lane that had one. The first
  // call goes lane by lane.
  void run(const std::function<void(int64_t lane)>& work);

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace lockstep::step
