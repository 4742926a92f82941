// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/advice/paper.h"
#include "lockstep/base/file.h"
#include "lockstep/planning/plan.h"

namespace lockstep::advice {

// Somebody's own figures for the same job: docs/formats/beside.md.
struct Beside {
  struct Figure {
    std::string what;  // "notebook, CPU"
    std::string on;  // time: a machine option of the plan, as it is labelled: "colab, 1 x k80"; memory: a job of --jobs
    double seconds = 0;  // of the run; 0: the figure is of memory
    double bytes = 0;    // of a GPU's memory
    std::string why;     // what may explain a difference
  };
  std::string source;
  std::vector<Figure> figures;
};

Beside read_beside(const base::Path& path);  // user error with the place

// A section with each figure, our forecast, and the ratio. User error when a machine option is not in the plan.
void add_beside(const Beside& beside, const planning::Plan& plan, Advice& advice);
// Likewise for memory, `ours` by job. User error when a job is not in it.
void add_memory_beside(const Beside& beside, const std::map<std::string, double>& ours, Advice& advice);

}  // namespace lockstep::advice
