// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/loader/collection.h"
#include "lockstep/spec/job.h"

namespace lockstep::loader {

// The samples of a job, before any pixel is read; user errors for what cannot be trained on.
struct Collections {
  Collection train;
  std::optional<Collection> validate;
};
Collections open_collections(const spec::Job& job);

// The samples of a folder as the job's task looks at them, with its classes; those of words are counted where the
// folder is that of the training data. REQUIRES: not "synthetic".
Collection scan_for(const spec::Job& job, const std::string& folder);

struct Fingerprints {
  std::string train, validate;  // that of no validation data is empty
};
Fingerprints compute_fingerprints(const Collections& collections);

// The job with everything filled in that the data decides.
spec::Job resolve(spec::Job job, const Collections& collections);

}  // namespace lockstep::loader
