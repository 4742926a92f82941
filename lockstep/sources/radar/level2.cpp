// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/level2.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/radar/big_endian.h"
#include "lockstep/sources/radar/bzip2_door.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kVolumeHeader = 24, kControl = 12, kMessageHeader = 16, kFrame = 2432;
// A volume is some 60 MB. One record of it is held at a time.
constexpr size_t kMaxUnpacked = size_t{1} << 30, kMaxRecord = size_t{64} << 20;
constexpr size_t kMostRays = 4096, kMostGates = 4096;  // of a sweep; the format's own are 720 and 1840
constexpr size_t kMostValues = size_t{1} << 26;        // of a volume; 25 sweeps of the format's own have half of it
constexpr double kDay = 86400;

bool has_volume_header(const BigEndian& file) {
  if (!file.has(0, kVolumeHeader)) return false;
  const std::string_view name = file.text(0, 9);
  return name == "ARCHIVE2." || (name.starts_with("AR2V00") && name[8] == '.');
}

// 1 is 1970-01-01.
double seconds_from(uint32_t day, uint32_t milliseconds) {
  return (static_cast<double>(day) - 1) * kDay + milliseconds / 1000.0;
}

std::string printable(std::string_view name) {
  std::string kept;
  for (const char c : name) {
    if (c > ' ' && c < 127) kept += c;
  }
  return kept;
}

RadarVolume header_of(const BigEndian& file, const std::string& source) {
  if (!has_volume_header(file)) {
    throw Error(Blame::user, text(source, ": no Level II volume: it does not begin with AR2V00nn. or ARCHIVE2."),
                "fetch the file again");
  }
  RadarVolume volume;
  volume.seconds = seconds_from(file.u32(12), file.u32(16));
  volume.site = printable(file.text(20, 4));
  return volume;
}

// Reflectivity along one ray, and where it was seen.
struct Ray {
  int64_t sweep = 0;
  double seconds = 0, azimuth = 0, elevation = 0;
  double first_gate = 0, gate_spacing = 0;
  bool has_velocity = false, has_zdr = false, begins_sweep = false;
  std::vector<float> values;
};

class Level2Reader {
 public:
  Level2Reader(std::span<const std::byte> file, const std::string& source) : source_(source) {
    const BigEndian bytes(file);
    volume_ = header_of(bytes, source);
    if (bytes.has(kVolumeHeader, 6) && bytes.text(28, 2) == "BZ") {
      read_records(bytes);
    } else {
      read_messages(file.subspan(kVolumeHeader), kVolumeHeader);
    }
    if (rays_ == 0) note_fault(text("cut off at byte ", file.size(), ": no radial in it"));
    finish_sweeps();
  }

  RadarVolume take() { return std::move(volume_); }

 private:
  void note_fault(const std::string& what) {
    if (volume_.fault.empty()) volume_.fault = what;
  }

  void read_records(const BigEndian& file) {
    size_t at = kVolumeHeader, total = 0;
    for (int number = 1; at < file.size(); ++number) {
      if (!file.has(at, 4)) return note_fault(text("cut off in front of record ", number, ", at byte ", at));
      const int64_t said = file.i32(at);
      const auto size = static_cast<size_t>(said < 0 ? -said : said);  // negative: the last one
      at += 4;
      if (size == 0) return;
      if (!file.has(at, size)) {
        return note_fault(text("cut off in record ", number, " at byte ", at, ": ", file.size() - at, " of ", size,
                               " bytes are there"));
      }
      std::string record;
      try {
        record = bunzip2(file.part(at, size), kMaxRecord, source_);
      } catch (const Error& error) {
        if (error.blame() != Blame::user) throw;
        return note_fault(text("damaged in record ", number, " at byte ", at));
      }
      total += record.size();
      if (total > kMaxUnpacked) return note_fault("it unpacks to more than 1 GiB");
      read_messages(std::as_bytes(std::span(record.data(), record.size())), at);
      if (!volume_.fault.empty()) return;
      at += size;
      if (said < 0) return;
    }
    if (!ended_) note_fault(text("cut off behind ", rays_, " rays: no last record, no end of the volume"));
  }

  // `base`: where these bytes, or the record that they were packed in, stand in the file.
  void read_messages(std::span<const std::byte> bytes, size_t base) {
    const BigEndian data(bytes);
    size_t at = 0;
    while (data.has(at, kControl + kMessageHeader)) {
      const size_t size = data.u16(at + kControl);
      const int type = data.u8(at + kControl + 3);
      const size_t whole = type == 31 ? kControl + 2 * size : kFrame;
      if (type == 31 && size < kMessageHeader / 2) {
        return note_fault(text("damaged: a message of ", 2 * size, " bytes at byte ", base + at));
      }
      if (type != 31 && !data.has(at, whole) && type == 0) return;  // empty frames may be left out at the end
      if (!data.has(at, whole)) {
        return note_fault(text("cut off in a message at byte ", base + at, ": ", data.size() - at, " of ", whole,
                               " bytes are there"));
      }
      const BigEndian body(bytes.subspan(at + kControl + kMessageHeader, whole - kControl - kMessageHeader));
      if (type == 31) add_ray(read_radial(body), base + at);
      if (type == 1) add_ray(read_old_radial(body), base + at);
      if (!volume_.fault.empty()) return;
      at += whole;
    }
    if (at < data.size() && data.size() - at >= kControl && type_behind(data, at) != 0) {
      note_fault(text("cut off in a message at byte ", base + at));
    }
  }

  // What is left behind the last whole message: zeros are padding.
  static int type_behind(const BigEndian& data, size_t at) {
    for (size_t i = at; i < data.size(); ++i) {
      if (data.u8(i) != 0) return 1;
    }
    return 0;
  }

  // Message 31. Nothing for a ray that is not as the format says.
  std::optional<Ray> read_radial(const BigEndian& body) {
    constexpr size_t kPointers = 32, kMostBlocks = 32;
    if (!body.has(0, kPointers)) return std::nullopt;
    Ray ray;
    ray.seconds = seconds_from(body.u16(8), body.u32(4));
    ray.azimuth = body.f32(12);
    ray.elevation = body.f32(24);
    ray.sweep = body.u8(22);
    note_status(body.u8(21), ray);
    const size_t blocks = std::min<size_t>(body.u16(30), kMostBlocks);
    if (!body.has(kPointers, 4 * blocks)) return std::nullopt;
    for (size_t i = 0; i < blocks; ++i) {
      const size_t at = body.u32(kPointers + 4 * i);
      if (at == 0) continue;
      if (!body.has(at, 4)) return std::nullopt;
      const std::string_view name = body.text(at, 4);
      if (name == "RVOL" && body.has(at, 20)) {
        volume_.latitude = body.f32(at + 8);
        volume_.longitude = body.f32(at + 12);
        volume_.altitude = body.i16(at + 16) + body.u16(at + 18);
      }
      ray.has_velocity |= name == "DVEL";
      ray.has_zdr |= name == "DZDR";
      if (name == "DREF" && !read_moment(body, at, ray)) return std::nullopt;
    }
    return ray;
  }

  static bool read_moment(const BigEndian& body, size_t at, Ray& ray) {
    if (!body.has(at, 28)) return false;
    const size_t gates = body.u16(at + 8), bits = body.u8(at + 19);
    const double scale = body.f32(at + 20), offset = body.f32(at + 24);
    if (gates > kMostGates || (bits != 8 && bits != 16) || !body.has(at + 28, gates * bits / 8)) return false;
    if (!std::isfinite(scale) || scale == 0 || !std::isfinite(offset)) return false;
    ray.first_gate = body.i16(at + 10);
    ray.gate_spacing = body.i16(at + 12);
    ray.values.clear();  // of a damaged ray that has two
    ray.values.reserve(gates);
    for (size_t i = 0; i < gates; ++i) {
      ray.values.push_back(value_of(bits == 8 ? body.u8(at + 28 + i) : body.u16(at + 28 + 2 * i), scale, offset));
    }
    return ray.gate_spacing > 0;
  }

  static float value_of(uint16_t raw, double scale, double offset) {
    if (raw == 0) return kNoEcho;
    if (raw == 1) return kNotMeasured;  // range folded
    return static_cast<float>((raw - offset) / scale);
  }

  std::optional<Ray> read_old_radial(const BigEndian& body) {
    constexpr double kAngle = 180.0 / 32768;
    if (!body.has(0, 100)) return std::nullopt;
    Ray ray;
    ray.seconds = seconds_from(body.u16(4), body.u32(0));
    ray.azimuth = body.u16(8) * kAngle;
    ray.elevation = body.u16(14) * kAngle;
    ray.sweep = body.u16(16);
    note_status(body.u16(12), ray);
    ray.has_velocity = body.u16(38) != 0;
    const size_t gates = body.u16(26), at = body.u16(36);
    if (at == 0 || gates == 0) return ray;  // velocity alone
    if (gates > kMostGates || !body.has(at, gates)) return std::nullopt;
    ray.first_gate = body.i16(18);
    ray.gate_spacing = body.i16(22);
    if (ray.gate_spacing <= 0) return std::nullopt;
    for (size_t i = 0; i < gates; ++i) ray.values.push_back(value_of(body.u8(at + i), 2, 66));
    return ray;
  }

  void note_status(int status, Ray& ray) {
    ray.begins_sweep = status == 0 || status == 3 || status == 5;
    ended_ |= status == 4;
  }

  void add_ray(std::optional<Ray> ray, size_t at) {
    const bool is_sound = ray && ray->azimuth >= -360 && ray->azimuth <= 720 && std::abs(ray->elevation) <= 360;
    if (!is_sound) return note_fault(text("damaged: a radial at byte ", at, " is not as the format says"));
    ++rays_;
    if (ray->elevation > 180) ray->elevation -= 360;
    if (ray->values.empty()) return;
    auto& sweeps = volume_.sweeps;
    if (sweeps.empty() || sweeps.back().number != ray->sweep ||
        (ray->begins_sweep && !sweeps.back().azimuths.empty())) {
      PolarSweep sweep;
      sweep.number = ray->sweep;
      sweep.seconds = ray->seconds;
      sweep.first_gate = ray->first_gate;
      sweep.gate_spacing = ray->gate_spacing;
      sweep.gates = static_cast<int64_t>(ray->values.size());
      sweep.has_velocity = ray->has_velocity;
      sweep.has_zdr = ray->has_zdr;
      sweeps.push_back(std::move(sweep));
    }
    PolarSweep& sweep = sweeps.back();
    if (sweep.azimuths.size() >= kMostRays) return note_fault(text("damaged: more than ", kMostRays, " rays a sweep"));
    if (sweep.first_gate != ray->first_gate || sweep.gate_spacing != ray->gate_spacing) {
      return note_fault(text("the radial at byte ", at, " has other gates than the rest of its sweep"));
    }
    // A ray of few bytes takes the room of the widest: a file of empty ones must not fill the memory.
    if ((values_ += static_cast<size_t>(sweep.gates)) > kMostValues) {
      return note_fault(text("damaged: more than ", kMostValues, " values at byte ", at));
    }
    ray->values.resize(static_cast<size_t>(sweep.gates), kNotMeasured);
    sweep.azimuths.push_back(std::fmod(ray->azimuth + 720, 360));
    sweep.elevation += ray->elevation;
    sweep.values.insert(sweep.values.end(), ray->values.begin(), ray->values.end());
  }

  void finish_sweeps() {
    for (PolarSweep& sweep : volume_.sweeps) sweep.elevation /= static_cast<double>(sweep.rays());
  }

  const std::string& source_;
  RadarVolume volume_;
  int64_t rays_ = 0;
  size_t values_ = 0;  // of all sweeps
  bool ended_ = false;
};

}  // namespace

bool looks_like_level2(std::span<const std::byte> file) {
  return has_volume_header(BigEndian(file));
}

RadarVolume read_level2_header(std::span<const std::byte> file, const std::string& source) {
  return header_of(BigEndian(file), source);
}

RadarVolume read_level2(std::span<const std::byte> file, const std::string& source) {
  return Level2Reader(file, source).take();
}

}  // namespace lockstep::sources
