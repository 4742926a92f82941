// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/loader_rate.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

// One core at 2.6 GHz (Zen 4). Entropy decoding goes by bytes, the transform by pixels, resizing by pixels that leave.
// Together they give the 2,450 samples per second measured for our loader at 224 pixels from 256-pixel JPEGs of 17 kB,
// and 770 for ImageNet's 110 kB at 500x375, where others' decoders alone reach 620 to 860 on cores like this.
constexpr double kSecondsPerByte = 4.4e-9;
constexpr double kSecondsPerPixel = 4.0e-9;
constexpr double kSecondsPerOutput = 1.4e-9;
constexpr double kMeasuredGhz = 2.6;

}  // namespace

LoaderRate forecast_loader(const SampleSize& size, int64_t cores, double clock_ghz, double read_rate, double wanted) {
  base::ensure(cores > 0 && size.image_pixels > 0, "cores load images of some size");
  const double slower = clock_ghz > 0 ? kMeasuredGhz / clock_ghz : 1;
  const double seconds = slower * (size.stored_bytes * kSecondsPerByte + size.stored_pixels * kSecondsPerPixel +
                                   size.image_pixels * kSecondsPerOutput);
  LoaderRate rate;
  rate.per_core = 1 / seconds;
  rate.samples = rate.per_core * static_cast<double>(cores);
  const double readable = read_rate > 0 && size.stored_bytes > 0 ? read_rate / size.stored_bytes : rate.samples;
  rate.reads_bound = readable < rate.samples;
  rate.samples = std::min(rate.samples, readable);
  rate.read_rate = rate.samples * size.stored_bytes;
  rate.cores_needed = wanted * seconds;
  rate.keeps_up = rate.samples >= wanted;
  return rate;
}

double checkpoint_seconds(double bytes, double write_rate) {
  base::ensure(write_rate > 0, "a file system that writes has a rate");
  return bytes / write_rate;
}

}  // namespace lockstep::forecast
