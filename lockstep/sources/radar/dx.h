// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/sources/radar/volume.h"

namespace lockstep::sources {

// The German weather service's DX product: one sweep of a site, 360 rays of 128 gates of 1 km, half a dBZ a step.
bool looks_like_dx(std::span<const std::byte> file);
// User error that names `source` for a file that is damaged or cut off.
RadarVolume read_dx(std::span<const std::byte> file, const std::string& source);

}  // namespace lockstep::sources
