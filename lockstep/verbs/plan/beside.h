// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/verbs/plan/paper.h"
#include "lockstep/verbs/plan/plan.h"

namespace lockstep::verbs {

// Somebody's own figures for the same job: docs/formats/beside.md.
struct Beside {
  struct Figure {
    std::string what;    // "notebook, CPU"
    std::string on;      // a place of the plan, as it is labelled: "i7-8700", "colab, 1 x k80"
    double seconds = 0;  // of the run
    std::string why;     // what may explain a difference
  };
  std::string source;
  std::vector<Figure> figures;
};

Beside read_beside(const base::Path& path);  // user error with the place

// A section with each figure, our forecast, and the ratio. User error when a place is not in the plan.
void add_beside(const Beside& beside, const Plan& plan, Advice& advice);

}  // namespace lockstep::verbs
