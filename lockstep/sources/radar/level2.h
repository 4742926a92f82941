// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/sources/radar/volume.h"

namespace lockstep::sources {

// NEXRAD's Level II archive files: radials as messages 31 (since 2008) and 1 (before), plain or packed by bzip2 record
// by record. The format is NOAA's interface control document 2620010 with 2620002; docs/nowcasting.md has what of it is
// read here.

bool looks_like_level2(std::span<const std::byte> file);  // by its first bytes
// Whose it is and when it begins, by its header alone. User error that names `source` when it is none.
RadarVolume read_level2_header(std::span<const std::byte> file, const std::string& source);
// With every sweep that has reflectivity. A file that is cut off or damaged gives what stands before that place, and
// `fault` says where it is. User error when not even a header is there.
RadarVolume read_level2(std::span<const std::byte> file, const std::string& source);

// The file of such a volume: version 06, messages 31, bzip2 records. Values are rounded to half a dBZ.
std::string write_level2(const RadarVolume& volume);

}  // namespace lockstep::sources
