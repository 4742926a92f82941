// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// COCO: one JSON file, or a folder with annotations/*.json (instances_train2017.json, captions_val2017.json, ...):
// files of the same part are joined by their images. Boxes and captions go into each sample's .json; there is no .cls.
bool looks_like_coco(const SourceOptions& options);
std::unique_ptr<Source> open_coco(const SourceOptions& options);

}  // namespace lockstep::sources
