// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "lockstep/base/json.h"

namespace lockstep::training {

// Tells a sudden rise of the loss or the gradient norm from their usual scatter: by the median of the last 64 steps,
// which a few wild ones do not move. A norm scatters more than a loss: it is compared with the square of the factor.
// Where the median is 0, or next to it, there is no usual scatter to tell anything from.
class SpikeDetector {
 public:
  explicit SpikeDetector(double factor) : factor_(factor) {}  // 0: nothing is a spike

  // What is wrong with this step, in words; empty when nothing is, and before 16 steps were seen.
  std::string check(double loss, double gradient_norm);
  void forget() { losses_.clear(), norms_.clear(); }
  bool is_on() const { return factor_ > 0; }

  base::Json to_json() const;  // what was seen: a resumed run decides like one that was not stopped
  void load(const base::Json& seen);

  bool operator==(const SpikeDetector&) const = default;

 private:
  double factor_;
  std::deque<double> losses_, norms_;
};

}  // namespace lockstep::training
