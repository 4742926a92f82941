// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/plan.h"
#include "lockstep/watching/run_log.h"

namespace lockstep::watching {

// One reason why a run is not faster.
struct Finding {
  std::string part;               // "data", "rank", "communication", "save", "evaluation", "compute", "other"
  double share = 0;               // of the time since the session was warm
  double measured = 0;            // seconds: of a step; of a save or an evaluation where it is one of those
  std::optional<double> planned;  // likewise, by the run's plan
  std::string what;               // the fact, in a sentence
  std::string setting = {};       // what to change: "data.threads=4", or a command; empty: nothing
  double gain = 0;                // share of the time that this would save, by the plan's model; 0: not known
  std::string advice = {};        // setting and gain in a sentence; empty: there is none
};

// "Why is it slow?": what costs most of the time, first what a setting would change, by what the journal has measured.
struct Slowness {
  std::vector<Finding> findings;  // empty: too few steps were taken to say
  double step_seconds = 0;        // the mean of a step, with all that it waits for
  TimeSplit split;                // of what the findings are about
};

// What a run is held against; null: it has none.
struct Terms {
  const spec::Job* job = nullptr;
  const spec::Plan* plan = nullptr;
  const spec::PlanOption* option = nullptr;  // of the plan: this run
};

Slowness explain_slowness(const RunLog& log, const Terms& terms);

base::Json to_json(const Slowness& slowness);
std::string to_text(const Slowness& slowness);  // a line each; the first says most

}  // namespace lockstep::watching
