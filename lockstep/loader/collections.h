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

struct Fingerprints {
  std::string train, validate;  // that of no validation data is empty
};
Fingerprints compute_fingerprints(const Collections& collections);

// The job with everything filled in that the data decides.
spec::Job resolve(spec::Job job, const Collections& collections);

}  // namespace lockstep::loader
