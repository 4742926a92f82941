// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// WebDataset tar files, one or a folder of them (parts by the first word of their names: train-0001.tar, val-0000.tar);
// a sample is what shares a key. Its .cls is the label, named by the shards.json of the folder where there is one.
// Other members are kept as they are.
bool looks_like_webdataset(const SourceOptions& options);
std::unique_ptr<Source> open_webdataset(const SourceOptions& options);

}  // namespace lockstep::sources
