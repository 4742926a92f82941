// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// A folder of radar files (NEXRAD Level II, ODIM-HDF5, DX; arrays of frames with --format radar): sequences of frames
// on a grid, each a strip of codes (task/frame_strip.h) with a json of where and when.
bool looks_like_radar(const SourceOptions& options);
std::unique_ptr<Source> open_radar(const SourceOptions& options);

}  // namespace lockstep::sources
