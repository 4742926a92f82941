// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/data/source.h"

namespace lockstep::data {

// SOURCE/<class>/**.jpg, or SOURCE/{train,val,test}/<class>/**.jpg with parts of its own.
bool looks_like_image_folder(const SourceOptions& options);
std::unique_ptr<Source> open_image_folder(const SourceOptions& options);

}  // namespace lockstep::data
