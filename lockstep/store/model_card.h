// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"

namespace lockstep::store {

// The model card of a version, in Markdown: what it is, how good, learnt from what, how to use it, under which licence.
// Only what `about` (about.json of the version) and the job say; what they do not say stands there as not stated.
std::string model_card(const base::Json& about, const spec::Job& job);

}  // namespace lockstep::store
