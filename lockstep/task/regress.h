// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/task/task.h"

namespace lockstep::task {

// A number per image: regress.value of each sample's "json" member. Fields "image", "value" and "valid" (0: no part).
std::unique_ptr<Task> make_regress(const spec::Job& job);

}  // namespace lockstep::task
