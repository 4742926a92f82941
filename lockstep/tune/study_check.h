// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/file.h"
#include "lockstep/spec/study.h"
#include "lockstep/tune/space.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

// User error when the study in the file `log` is not the one that is asked for: it has several objectives, another
// direction, or parameters of another kind.
void check_study(const Trials& trials, const spec::Study& study, const Space& space, const base::Path& log);

}  // namespace lockstep::tune
