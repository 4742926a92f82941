// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// Oxford-IIIT Pet: images/*.jpg, annotations/trainval.txt and test.txt (image, class from 1, species, breed); a class
// is named by its images' file names without the number. With both lists it has parts of its own.
bool looks_like_pets(const SourceOptions& options);
std::unique_ptr<Source> open_pets(const SourceOptions& options);

}  // namespace lockstep::sources
