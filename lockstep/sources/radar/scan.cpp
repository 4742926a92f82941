// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/hdf5_door.h"
#include "lockstep/sources/npy.h"
#include "lockstep/sources/radar/dx.h"
#include "lockstep/sources/radar/level2.h"
#include "lockstep/sources/radar/odim.h"
#include "lockstep/sources/zlib_door.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kMostScanBytes = size_t{1} << 30, kStartBytes = 4096;
constexpr int64_t kMostFrames = int64_t{1} << 22;  // of one array: 40 years of them
constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n", kNpyMagic = "\x93NUMPY";

enum class Amount { start, whole };  // of a gzipped file, which is unpacked in memory

class ScanBytes {
 public:
  ScanBytes(const base::Path& path, Amount amount) : file_(path) {
    const auto bytes = file_.bytes();
    if (bytes.size() <= 2 || bytes[0] != std::byte{0x1f} || bytes[1] != std::byte{0x8b}) return;
    unpacked_ = amount == Amount::start ? gunzip_start(bytes, kStartBytes, path.string())
                                        : gunzip(bytes, kMostScanBytes, path.string());
  }
  std::span<const std::byte> bytes() const {
    return unpacked_ ? std::as_bytes(std::span(unpacked_->data(), unpacked_->size())) : file_.bytes();
  }
  bool is_packed() const { return unpacked_.has_value(); }
  bool begins_with(std::string_view magic) const {
    const auto all = bytes();
    return all.size() >= magic.size() && std::memcmp(all.data(), magic.data(), magic.size()) == 0;
  }

 private:
  base::MappedFile file_;
  std::optional<std::string> unpacked_;
};

std::string site_of_name(const base::Path& path) {
  const std::string stem = path.stem().string();
  return stem.empty() ? "frames" : stem;
}

const Hdf5Array* frames_of_file(const Hdf5File& file) {
  for (const Hdf5Array& array : file.arrays()) {
    if (array.shape.size() == 3) return &array;
  }
  return nullptr;
}

std::vector<Scan> array_scans(const base::Path& path, int64_t count, double minutes) {
  if (count > kMostFrames) {
    throw Error(Blame::user, text(path.string(), ": ", count, " frames in one array"),
                text("at most ", kMostFrames, ": cut it into several files"));
  }
  std::vector<Scan> scans;
  scans.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    scans.push_back({path, ScanFormat::array, site_of_name(path), static_cast<double>(i) * minutes * 60, i});
  }
  return scans;
}

std::vector<Scan> hdf5_scans(const base::Path& path, double minutes) {
  const Hdf5File file(path);
  if (!is_odim(file)) {
    const Hdf5Array* array = frames_of_file(file);
    return array ? array_scans(path, array->count(), minutes) : std::vector<Scan>{};
  }
  const RadarVolume header = read_odim_header(file, path.string());
  const bool is_image = is_odim_image(file);
  return {{path, is_image ? ScanFormat::odim_image : ScanFormat::odim, header.site, header.seconds, 0}};
}

// Numbers of a plain array: bytes are codes already, others are dBZ, or mm/h.
uint8_t code_of_number(double number, const RadarOptions& options) {
  if (std::isnan(number)) return task::kCodeMissing;
  if (options.rates) return number > 0 ? task::code_of_dbz(task::RainLaw().dbz(number)) : task::kCodeDry;
  return number <= -32 ? task::kCodeDry : task::code_of_dbz(number);
}

GriddedScan array_frame(const std::string& bytes, const std::string& type, int64_t height, int64_t width,
                        const Scan& scan, const RadarOptions& options) {
  GriddedScan frame{height, width, {}};
  const auto count = static_cast<size_t>(height * width);
  frame.codes.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (type == "u1") {
      frame.codes.push_back(static_cast<uint8_t>(bytes[i]));
    } else if (type == "f4") {
      float number = 0;
      std::memcpy(&number, bytes.data() + 4 * i, 4);
      frame.codes.push_back(code_of_number(number, options));
    } else if (type == "f8") {
      double number = 0;
      std::memcpy(&number, bytes.data() + 8 * i, 8);
      frame.codes.push_back(code_of_number(number, options));
    } else {
      throw Error(Blame::user, text(scan.path.string(), ": frames of type ", type),
                  "save them as float32 (dBZ, or mm/h with --rates) or as uint8 (codes)");
    }
  }
  return frame;
}

GriddedScan read_array(const Scan& scan, const RadarOptions& options) {
  const std::string source = scan.path.string();
  const ScanBytes start(scan.path, Amount::start);
  if (start.begins_with(kHdf5Magic)) {
    const Hdf5File file(scan.path);
    const Hdf5Array& array = *frames_of_file(file);
    check_grid(array.shape[1], array.shape[2], source);
    return array_frame(file.slice(array, scan.index), array.type, array.shape[1], array.shape[2], scan, options);
  }
  const auto bytes = start.bytes();
  const NpyHeader header = read_npy_header(bytes, source);
  check_grid(header.shape[1], header.shape[2], source);
  const auto* begin =
      reinterpret_cast<const char*>(bytes.data()) + header.data_offset + scan.index * header.slice_bytes();
  return array_frame({begin, static_cast<size_t>(header.slice_bytes())}, header.type, header.shape[1], header.shape[2],
                     scan, options);
}

GriddedScan codes_of_cells(const std::vector<float>& cells, int64_t height, int64_t width) {
  GriddedScan frame{height, width, {}};
  frame.codes.reserve(cells.size());
  for (const float value : cells) frame.codes.push_back(task::code_of_dbz(value));
  return frame;
}

}  // namespace

bool is_radar_file(const base::Path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) < 24) return false;
  try {
    const ScanBytes start(path, Amount::start);
    if (looks_like_level2(start.bytes()) || looks_like_dx(start.bytes())) return true;
    return start.begins_with(kHdf5Magic) && !start.is_packed() && is_odim(Hdf5File(path));
  } catch (const Error& fault) {
    if (fault.blame() == Blame::bug) throw;
    return false;
  }
}

std::vector<Scan> list_scans(const base::Path& path, double minutes) {
  const ScanBytes start(path, Amount::start);
  const bool is_array = start.begins_with(kNpyMagic);
  if ((is_array || start.begins_with(kHdf5Magic)) && start.is_packed()) {
    throw Error(Blame::user, text(path.string(), ": a gzipped ", is_array ? "array" : "HDF5 file"),
                "unpack it: gunzip");
  }
  if (start.begins_with(kHdf5Magic)) return hdf5_scans(path, minutes);
  if (is_array) {
    const NpyHeader header = read_npy_header(start.bytes(), path.string());
    return header.shape.size() == 3 ? array_scans(path, header.count(), minutes) : std::vector<Scan>{};
  }
  if (looks_like_dx(start.bytes())) {
    const RadarVolume volume = read_dx(ScanBytes(path, Amount::whole).bytes(), path.string());
    return {{path, ScanFormat::dx, volume.site, volume.seconds, 0}};
  }
  if (!looks_like_level2(start.bytes())) return {};
  const RadarVolume volume = read_level2_header(start.bytes(), path.string());
  // Volumes of before 2008 name no site: their files do.
  const std::string site = volume.site.empty() ? site_of_name(path).substr(0, 4) : volume.site;
  return {{path, ScanFormat::level2, site, volume.seconds, 0}};
}

RadarVolume read_volume(const Scan& scan) {
  const std::string source = scan.path.string();
  if (scan.format == ScanFormat::odim) return read_odim(Hdf5File(scan.path), source);
  const ScanBytes file(scan.path, Amount::whole);
  return scan.format == ScanFormat::dx ? read_dx(file.bytes(), source) : read_level2(file.bytes(), source);
}

GriddedScan grid_scan(const Scan& scan, const RadarOptions& options) {
  if (scan.format == ScanFormat::array) return read_array(scan, options);
  if (scan.format == ScanFormat::odim_image) {
    const OdimImage image = read_odim_image(Hdf5File(scan.path), scan.path.string());
    return codes_of_cells(image.values, image.height, image.width);
  }
  const RadarVolume volume = read_volume(scan);
  const PolarSweep& sweep = volume.lowest(scan.path.string());
  return codes_of_cells(grid_sweep(sweep, options.grid, options.gridding), options.grid.side, options.grid.side);
}

GriddedScan grid_composite(std::span<const Scan> scans, const RadarOptions& options) {
  std::vector<RadarVolume> volumes;
  std::vector<PlacedSweep> placed;
  double latitude = 0, longitude = 0;
  volumes.reserve(scans.size());  // sweeps are pointed to
  for (const Scan& scan : scans) {
    if (scan.format == ScanFormat::array || scan.format == ScanFormat::odim_image) {
      throw Error(Blame::user, text(scan.path.string(), ": is a grid already, --composite joins polar files"),
                  "leave --composite out");
    }
    volumes.push_back(read_volume(scan));
    const RadarVolume& volume = volumes.back();
    placed.push_back({&volume.lowest(scan.path.string()), volume.latitude, volume.longitude});
    latitude += volume.latitude / static_cast<double>(scans.size());
    longitude += volume.longitude / static_cast<double>(scans.size());
  }
  return codes_of_cells(composite(placed, latitude, longitude, options.grid), options.grid.side, options.grid.side);
}

}  // namespace lockstep::sources
