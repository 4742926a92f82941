// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/chain/planned.h"
#include "lockstep/chain/script.h"
#include "lockstep/chain/submit_request.h"

namespace lockstep::chain {

// A shape that could be submitted, and when it would end.
struct Candidate {
  ScriptRequest script;
  PlannedShape planned;               // seconds 0: not known
  std::optional<double> start;        // Unix seconds, by the scheduler
  std::string refusal;                // why the scheduler would not start it
  std::optional<double> end() const;  // start + planned seconds
};

// How long each shape takes: by hand (--hours), or by `lockstep plan`. Nothing is known of a collection or a study.
Planned planned_of(const SubmitRequest& request, const catalogue::Catalogue& catalogue, const std::string& device,
                   double limit);

// One for each number of nodes that the plan does not rule out; user error when it rules out all of them. `limit`: of
// the walltime.
std::vector<Candidate> candidates_of(const SubmitRequest& request, const std::string& device, const Planned& planned,
                                     double limit);

// Asks the scheduler when each would start.
void ask_starts(std::vector<Candidate>& candidates, const spec::Machine& machine);

// The one that ends first; user error with every refusal when none can be told an end.
size_t ends_first(const std::vector<Candidate>& candidates);

}  // namespace lockstep::chain
