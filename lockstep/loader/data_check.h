// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/loader/collection.h"
#include "lockstep/loader/loader.h"
#include "lockstep/task/task.h"

namespace lockstep::loader {

// Reads and decodes every sample of a collection once, whole (a loader decodes what its crop needs), with all that the
// task reads of it. Those that a run could not use, or not all of, by id, each with its reason. Errors of the machine
// are thrown. `progress`: how many are done, never from two threads at once.
std::vector<BadSample> find_bad_samples(const Collection& collection, const task::Task& task, int64_t threads,
                                        const std::function<void(int64_t)>& progress = {});

}  // namespace lockstep::loader
