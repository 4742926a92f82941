// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/sources/radar/volume.h"

namespace lockstep::sources {

// A made-up summer: events of rain, each of cells that are born, grow, rain out and die while a turning wind carries
// them. What becomes of a cell follows from its past, so that it can be learnt; whoever carries on what there is,
// without growth and decay, is wrong before long.
struct RainWorld {
  int64_t seed = 1;
  double minutes = 5;   // from one frame to the next
  int64_t frames = 36;  // of an event
  double pause = 60;    // minutes between events

  // Seconds since 1970 of frame `index` of all.
  double seconds_at(int64_t index) const;
  // What a radar in its middle sees: one sweep of 1 degree, gates of 1 km up to `range` km.
  RadarVolume volume(int64_t index, int64_t range = 92) const;
};

}  // namespace lockstep::sources
