// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/error.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

// What the scheduler said when it refused a job, as an error with the key of the machine document that fixes it.
base::Error refusal_error(const std::string& words, const spec::Scheduler& scheduler);

// The lines of a complaint, with "; " between them.
std::string in_one_line(const std::string& words);

// What can be known to be wrong before anything is submitted: the commands are not here, there is no such partition, it
// lets no job run that long or has fewer nodes. Asks `sinfo`; says nothing where it does not answer.
void check_site(const spec::Machine& machine, int64_t nodes, double walltime);

}  // namespace lockstep::chain
