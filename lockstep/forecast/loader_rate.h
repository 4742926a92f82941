// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::forecast {

// What one sample costs a loader: its stored form and the image that leaves.
struct SampleSize {
  double stored_bytes = 0;   // a JPEG's length
  double stored_pixels = 0;  // width x height before the crop
  double image_pixels = 0;   // width x height that the network takes
};

struct LoaderRate {
  double per_core = 0;       // samples per second
  double samples = 0;        // per second, of all cores or of the file system, whichever is less
  double read_rate = 0;      // bytes per second that this needs
  bool reads_bound = false;  // the file system is what limits
  double cores_needed = 0;   // for `wanted` samples per second
  bool keeps_up = false;
};

// `cores` at `clock_ghz` (0: as measured) against `wanted` samples per second; `read_rate` of the file system in bytes
// per second, 0: not the limit.
LoaderRate forecast_loader(const SampleSize& size, int64_t cores, double clock_ghz, double read_rate, double wanted);

// Seconds to write `bytes` at `write_rate` bytes per second. REQUIRES: a positive rate.
double checkpoint_seconds(double bytes, double write_rate);

}  // namespace lockstep::forecast
