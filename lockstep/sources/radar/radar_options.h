// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/sources/radar/grid.h"

namespace lockstep::sources {

// How files of radars become sequences.
struct RadarOptions {
  int64_t frames = 17;  // of a sequence
  int64_t stride = 0;   // frames from the start of one sequence to that of the next; 0: a sequence's length, no overlap
  double minutes = 5;   // from one frame to the next
  GridShape grid = {128, 2000};
  Gridding gridding = Gridding::mean;
  bool composite = false;  // all sites on one grid
  bool rates = false;      // numbers of plain arrays are mm/h, not dBZ
  double rain = 0;         // share of the cells, over a sequence, in which it must rain
  double validate = 0.1;   // shares of the sequences, from the latest on: test, then validate
  double test = 0;

  bool operator==(const RadarOptions&) const = default;
};

}  // namespace lockstep::sources
