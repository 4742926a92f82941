// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Classes in an order, which is that of their names: grades, ages, sizes. Fields "image" and "label" (-1: no part).
std::unique_ptr<Task> make_ordinal(const spec::Job& job, std::vector<std::string> classes);

// Cohen's kappa with quadratic weights of pairs (label, answer): 1 is perfect, 0 what chance would reach.
double quadratic_kappa(std::span<const std::pair<int64_t, int64_t>> pairs, int64_t num_classes);

}  // namespace lockstep::task
