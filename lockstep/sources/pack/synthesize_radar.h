// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/sources/pack/shapes.h"

namespace lockstep::sources {

// A made-up summer of rain (radar/rain_world.h) as files of a radar, five minutes apart, to be prepared like real ones.
//   radar  FOLDER/KSYN20240521_120000_V06: NEXRAD Level II
//   odim   FOLDER/KSYN20240521_120000.h5: ODIM-HDF5
struct RadarWorldRequest {
  std::string kind;
  base::Path folder;
  int64_t count = 720;  // volumes: 36 an event
  int64_t classes = 0;  // has none
  int64_t seed = 1;
  int64_t image_size = 0;  // a radar has no pixels
  int64_t threads = 0;
};

// As prepare_shapes: left alone when complete, completed when not, the same bytes on any number of threads.
Dataset prepare_radar_world(const RadarWorldRequest& request,
                            const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace lockstep::sources
