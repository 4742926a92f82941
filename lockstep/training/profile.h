// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace lockstep::training {

// For its lifetime, the seconds that this thread spends in operators, by operator class (forecast::OperatorClass): on a
// processor an operator is done when it returns, and forward and backward run on the thread that asks for them. A GPU
// works on after the call: its operators cannot be timed so. One at a time in a thread.
class OperatorProfile {
 public:
  OperatorProfile();
  ~OperatorProfile();
  OperatorProfile(const OperatorProfile&) = delete;
  OperatorProfile& operator=(const OperatorProfile&) = delete;

  std::map<std::string, double> seconds_by_class() const;

 private:
  struct Sums;
  std::unique_ptr<Sums> sums_;
  uint64_t handle_;
};

}  // namespace lockstep::training
