// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/arguments.h"
#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"

namespace lockstep::verbs::train {

// train --check-data: every sample of the job, looked at once. `list`: where all bad ones are written. The exit code.
int check_data(const spec::Job& job, const base::Arguments& arguments, const base::Path& list);

}  // namespace lockstep::verbs::train
