// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "lockstep/task/caption_metrics.h"
#include "lockstep/task/task.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::task {

// Captions that were found against those that people wrote; the loss a word is that of the given ones. `record`: what
// is shown of a sample among the worst.
std::unique_ptr<Score> make_caption_score(std::shared_ptr<const Vocabulary> words, int64_t worst,
                                          std::function<base::Json(const Rows&, int64_t)> record);

}  // namespace lockstep::task
