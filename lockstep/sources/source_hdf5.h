// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// An HDF5 file of arrays: "images" (or x, data) with "labels" (or y, targets) beside it, also in groups ("train/x",
// "test/x") or with the part in the name ("x_train"). Which it is may be said: --path-column for the samples,
// --label-column for the labels. A file with one array of several axes needs no names.
bool looks_like_hdf5(const SourceOptions& options);
std::unique_ptr<Source> open_hdf5(const SourceOptions& options);

}  // namespace lockstep::sources
