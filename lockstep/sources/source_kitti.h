// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// KITTI object detection: [training/]image_2/NNNNNN.png, label_2/NNNNNN.txt, calib/NNNNNN.txt. 481 of 7,481 samples are
// for validation unless another share is asked for. Objects and calibration go into each sample's .json.
bool looks_like_kitti(const SourceOptions& options);
std::unique_ptr<Source> open_kitti(const SourceOptions& options);

}  // namespace lockstep::sources
