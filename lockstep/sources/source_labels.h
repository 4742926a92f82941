// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// Images with a PNG each whose pixels are labels (image/label_image.h), in PASCAL VOC's layout, where
// ImageSets/Segmentation/*.txt say what belongs to which part, or as images/ and labels/ with files of the same names,
// perhaps in folders called train, val or test. The classes stand in classes.txt, a line a label; VOC's own are known.
bool looks_like_labels(const SourceOptions& options);
std::unique_ptr<Source> open_labels(const SourceOptions& options);

}  // namespace lockstep::sources
