// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/tune/child.h"

namespace lockstep::tune {

// How one run of a trial ended.
struct TrialEnd {
  enum class How { complete, stopped, crashed, refused };  // stopped: as it was asked; refused: again would end alike
  How how = How::complete;
  double value = 0;
  std::string trouble = {};
};

// A trial under way in a process of its own.
class TrialRun {
 public:
  virtual ~TrialRun() = default;
  virtual bool poll() = 0;  // true: it is over; never waits
  // Values by step since the last call.
  virtual std::vector<std::pair<int64_t, double>> take_reports() = 0;
  virtual void stop() = 0;           // asks it to end in order
  virtual TrialEnd end() const = 0;  // REQUIRES: poll() gave true
  virtual const Child& child() const = 0;
};

// A program that prints its value: the last line that is a number. With `reports` each such line is a value of its own,
// numbered from 1.
std::unique_ptr<TrialRun> start_program(const std::vector<std::string>& words, const ChildOptions& options,
                                        bool reports);

struct JobTrial {
  std::vector<std::string> words;  // lockstep train ...
  base::Path run;                  // its run folder
  std::string objective;           // headline, or a figure of the validation
  bool maximize = false;
  int64_t reported = 0;  // steps up to this one are known from an earlier session
};
// A training: its reports are the evaluations of the validation set, by epoch, its value is the best of them.
std::unique_ptr<TrialRun> start_job(const JobTrial& trial, const ChildOptions& options);

// The figure of an `evaluate` event; user error when there is none of that name.
double objective_of(const base::Json& event, const std::string& objective);

}  // namespace lockstep::tune
