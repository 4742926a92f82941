// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/chain/script.h"
#include "lockstep/site/partitions.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

// What the scheduler said when it refused a job, as an error with the key of the machine document that fixes it.
base::Error refusal_error(const std::string& words, const spec::Scheduler& scheduler);

// The lines of a complaint, with "; " between them.
std::string in_one_line(const std::string& words);

// Machine error when the scheduler's commands are not here.
void check_commands(const spec::Machine& machine);

// What can be known to be wrong before anything is submitted: there is no such partition or queue, it takes no jobs,
// lets none run that long, has fewer nodes, or (PBS, which would let the job wait for good) none that holds what is
// asked for on each. No partitions: nothing is known. Returns a warning, or nothing.
std::string check_site(const spec::Machine& machine, const std::vector<site::Partition>& partitions,
                       const Shape& shape);

}  // namespace lockstep::chain
