// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"

namespace lockstep::weights {

struct LoadedJob {
  spec::Job job;
  std::vector<std::string> notes = {};  // for people: the recipe that was taken, warnings
};

// spec::load_job, and of a job that starts from weights what it leaves unsaid: how images are shown to those weights
// (preprocessing.h; where the file is there), and the recipe (spec/recipe.h).
LoadedJob load_job(const base::Path& path, const std::vector<std::string>& sets = {});

// Likewise for a job whose weights are those of `source`, whatever it starts from itself: to evaluate them.
LoadedJob load_job_for(const base::Path& source, const base::Path& path, const std::vector<std::string>& sets = {});

}  // namespace lockstep::weights
