// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Any number of multilabel.classes per image, named in each sample's "json" member. Fields "image", "label" (0 or 1 for
// each class) and "valid" (0: no part).
std::unique_ptr<Task> make_multilabel(const spec::Job& job);

struct Ranked {
  float score = 0;
  bool is_positive = false;
};
// The mean of the precision at each positive, from the highest score down, ties together: the sum of (R_n - R_n-1) P_n,
// as scikit-learn's average_precision_score. NaN without a positive.
double average_precision(std::vector<Ranked> all);

}  // namespace lockstep::task
