// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/arguments.h"

namespace lockstep::verbs::predict {

// `predict RUN IMAGES... --to FILE.jsonl`: a collection, restartable. The exit code: 85 when it was stopped.
int predict_collection_command(const base::Arguments& arguments, const std::vector<std::string>& words);

// User error for options that only such a collection takes.
void refuse_collection_options(const base::Arguments& arguments);

}  // namespace lockstep::verbs::predict
