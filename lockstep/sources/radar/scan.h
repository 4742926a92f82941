// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/sources/radar/radar_options.h"
#include "lockstep/sources/radar/volume.h"

namespace lockstep::sources {

// Radar files, of whatever format: one frame each, or (plain arrays) many.
enum class ScanFormat { level2, dx, odim, odim_image, array };

// One frame, as a file is listed: when and where, not yet its values.
struct Scan {
  base::Path path;
  ScanFormat format = ScanFormat::level2;
  std::string site;
  double seconds = 0;
  int64_t index = 0;  // in its file
};

// The frames of a file; none where it is no radar file. `minutes`: from one frame of an array to the next. User error,
// which names it, for one that is damaged at its beginning.
std::vector<Scan> list_scans(const base::Path& path, double minutes);
bool is_radar_file(const base::Path& path);  // by its first bytes

// Cells of a frame, codes as strips have them (task/frame_strip.h).
struct GriddedScan {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> codes;

  bool operator==(const GriddedScan&) const = default;
};
// User error, which names the file: damaged, cut off, its lowest sweep missing, no cells or too many.
GriddedScan grid_scan(const Scan& scan, const RadarOptions& options);
// All of one time on one grid around the middle of their radars.
GriddedScan grid_composite(std::span<const Scan> scans, const RadarOptions& options);

// The volume of a polar file.
RadarVolume read_volume(const Scan& scan);

}  // namespace lockstep::sources
