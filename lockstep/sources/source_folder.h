// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// SOURCE/<class>/**.jpg by class and then name, or SOURCE/{train,val,test}/<class>/**.jpg with parts of its own.
bool looks_like_image_folder(const SourceOptions& options);
std::unique_ptr<Source> open_image_folder(const SourceOptions& options);

// User error for an image whose class is a part of a dataset (with folders in it), or has one in it: "test" would be
// trained on. `name` is below `root`; its class begins at `class_begin`.
void refuse_part_in_class(const base::Path& root, const std::string& name, size_t class_begin);

}  // namespace lockstep::sources
