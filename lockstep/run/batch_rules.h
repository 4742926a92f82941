// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/spec/job.h"

namespace lockstep::run {

// What the job's large-batch rules come to on these ranks, a line each; nothing where there is none.
std::vector<std::string> batch_rule_lines(const spec::Training& training, int64_t ranks);

}  // namespace lockstep::run
