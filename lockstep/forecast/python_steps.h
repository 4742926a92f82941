// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "lockstep/base/json.h"
#include "lockstep/forecast/gpu_families.h"
#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// What a step of somebody's PyTorch script takes beside what the calibration of our own step says: Python launches its
// operators, cuDNN's kernels are taken as its heuristic chooses them, and some operators are none of ours.
// python_steps.json, made by scripts/fit_foreign.py from measured steps of plain PyTorch.
struct PythonSteps {
  double host = 1;                                             // of our own launching thread
  std::map<std::pair<OperatorClass, Layout>, double> classes;  // times the seconds of an operator
  std::map<std::string, double> names;                         // likewise, in place of its class
  Spread spread = {};                                          // of steps that the fit had not seen
  int64_t steps = 0;                                           // behind it

  double factor(const Operator& op, Layout layout) const;
};
PythonSteps parse_python_steps(const base::Json& document);  // user error with the place
PythonSteps load_python_steps();                             // the embedded one

// PyTorch's Python ran it: lockstep.record wrote the recording.
bool is_python_step(const Recording& recording);

}  // namespace lockstep::forecast
