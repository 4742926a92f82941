// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// How well sentences are told apart: of the class `positive` precision, recall, F1 (the headline) and average
// precision, over all classes accuracy, log loss and the expected calibration error (15 bins of equal width); beside
// them what answering the most frequent class, and the positive one, always would reach. Rows: field "label" (-1: no
// part), output "logits", annotation {"text"}, of which the worst mistakes keep theirs.
std::unique_ptr<Score> make_text_score(std::vector<std::string> classes, int64_t positive, int64_t worst);

}  // namespace lockstep::task
