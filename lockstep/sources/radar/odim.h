// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/sources/hdf5_door.h"
#include "lockstep/sources/radar/volume.h"

namespace lockstep::sources {

// ODIM_H5, the European weather services' HDF5 (OPERA's data information model, versions 2.0 to 2.4): polar volumes and
// scans (PVOL, SCAN), and composites (COMP) that are a grid already.

bool is_odim(const Hdf5File& file);

// When and where, without any value.
RadarVolume read_odim_header(const Hdf5File& file, const std::string& source);
// Sweeps of DBZH, else of TH. User error, which names `source`, for one without either, or whose numbers do not fit.
RadarVolume read_odim(const Hdf5File& file, const std::string& source);

// A composite: rows from the north, in dBZ (rates, RATE in mm/h, by `factor` R^`exponent`).
struct OdimImage {
  double seconds = 0;
  int64_t height = 0, width = 0;
  double cell = 0;  // metres
  std::vector<float> values = {};
};
bool is_odim_image(const Hdf5File& file);
OdimImage read_odim_image(const Hdf5File& file, const std::string& source, double factor = 200, double exponent = 1.6);

// A polar volume as a file; values are rounded to half a dBZ. Rays are put in order from the north.
void write_odim(const RadarVolume& volume, const base::Path& path);

}  // namespace lockstep::sources
