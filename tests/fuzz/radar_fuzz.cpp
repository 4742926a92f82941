// sources: lockstep/base/*.cpp lockstep/sources/zlib_door.cpp lockstep/sources/radar/level2.cpp
// sources: lockstep/sources/radar/dx.cpp lockstep/sources/radar/volume.cpp lockstep/sources/radar/bzip2_door.cpp
// sources: lockstep/sources/radar/grid.cpp libraries: -lz -lbz2
// SPDX-License-Identifier: Apache-2.0
// Any bytes give a volume whose sweeps have as many values as rays and gates say, or a user error. Records that are
// packed are seldom found by chance: messages stand plain in the seeds, too.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/sources/radar/dx.h"
#include "lockstep/sources/radar/grid.h"
#include "lockstep/sources/radar/level2.h"

namespace {

void look_at(const lockstep::sources::RadarVolume& volume) {
  for (const auto& sweep : volume.sweeps) {
    if (sweep.gates < 1 || static_cast<int64_t>(sweep.values.size()) != sweep.rays() * sweep.gates) std::abort();
    for (const double azimuth : sweep.azimuths) {
      if (!(azimuth >= 0 && azimuth <= 360)) std::abort();
    }
    if (sweep.rays() * sweep.gates > 100000) continue;
    for (const auto how : {lockstep::sources::Gridding::nearest, lockstep::sources::Gridding::mean}) {
      if (grid_sweep(sweep, {8, 20000}, how).size() != 64) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  const auto file = std::as_bytes(std::span(bytes, size));
  for (const auto read : {sources::read_level2, sources::read_dx}) {
    try {
      look_at(read(file, "fuzz"));
    } catch (const base::Error& error) {
      if (error.blame() != base::Blame::user) std::abort();
    }
  }
  return 0;
}
