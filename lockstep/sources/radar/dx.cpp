// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/dx.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

constexpr uint16_t kNewRay = 0x2000, kZeros = 0x1000, kValue = 0x0fff, kAngleBits = 0x0fff;
constexpr int64_t kDxGates = 128;
constexpr size_t kMostDxRays = 1440, kDxHeader = 24;  // "DX", day and time, site, month and year, "BY", bytes

std::string_view words_of_file(std::span<const std::byte> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

bool all_digits(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

[[noreturn]] void fail_dx(const std::string& source, const std::string& what) {
  throw base::Error(base::Blame::user, base::text(source, ": ", what), "fetch the file again, or leave it out");
}

float dbz_of_dx(uint16_t raw) {
  return raw == 0 ? kNoEcho : static_cast<float>(raw) * 0.5F - 32.5F;
}

}  // namespace

bool looks_like_dx(std::span<const std::byte> file) {
  const std::string_view words = words_of_file(file);
  return words.size() > kDxHeader && words.starts_with("DX") && all_digits(words.substr(2, 15)) &&
         words.substr(17, 2) == "BY";
}

RadarVolume read_dx(std::span<const std::byte> file, const std::string& source) {
  if (!looks_like_dx(file)) fail_dx(source, "no DX product of the German weather service");
  const std::string_view words = words_of_file(file);
  size_t begin = words.find('\x03');
  if (begin == std::string_view::npos) fail_dx(source, "the header of the DX product has no end");
  while (begin < words.size() && words[begin] == '\x03') ++begin;
  const auto said = static_cast<size_t>(std::atoll(std::string(words.substr(19, 5)).c_str()));
  if (said > file.size()) fail_dx(source, base::text("cut off: ", file.size(), " of ", said, " bytes are there"));
  const std::string header(words.substr(0, kDxHeader));  // DXddhhmmSSSSSmmyyBYnnnnn
  RadarVolume volume;
  volume.site = header.substr(8, 5);
  volume.seconds =
      moment_of(base::text("20", header.substr(15, 2), header.substr(13, 2), header.substr(2, 2)), header.substr(4, 4));
  if (std::isnan(volume.seconds)) fail_dx(source, base::text("damaged: its date is none (", header, ")"));
  PolarSweep sweep;
  sweep.number = 1;
  sweep.seconds = volume.seconds;
  sweep.first_gate = 500;
  sweep.gates = kDxGates;
  const auto word = [&](size_t at) {
    return static_cast<uint16_t>(static_cast<uint8_t>(words[at]) | static_cast<uint8_t>(words[at + 1]) << 8);
  };
  size_t at = begin;
  const size_t end = begin + (std::max(said, begin) - begin) / 2 * 2;
  while (at + 6 <= end) {
    if (word(at) != kNewRay) fail_dx(source, base::text("damaged: no ray begins at byte ", at));
    if (sweep.azimuths.size() >= kMostDxRays) fail_dx(source, "damaged: too many rays");
    sweep.azimuths.push_back((word(at + 2) & kAngleBits) / 10.0 + 0.5);  // the angle is where the ray begins
    sweep.elevation += (word(at + 4) & kAngleBits) / 10.0;
    std::vector<float> ray;
    for (at += 6; at + 2 <= end && word(at) != kNewRay; at += 2) {
      const uint16_t value = word(at);
      const size_t count = (value & kZeros) != 0 ? value & kValue : 1;
      if (ray.size() < static_cast<size_t>(kDxGates)) {
        ray.insert(ray.end(), std::min(count, static_cast<size_t>(kDxGates)),
                   (value & kZeros) != 0 ? kNoEcho : dbz_of_dx(value & kValue));
      }
    }
    ray.resize(static_cast<size_t>(kDxGates), kNotMeasured);
    sweep.values.insert(sweep.values.end(), ray.begin(), ray.end());
  }
  if (sweep.azimuths.empty()) fail_dx(source, "no ray in it");
  for (double& azimuth : sweep.azimuths) azimuth = std::fmod(azimuth, 360);
  sweep.elevation /= static_cast<double>(sweep.rays());
  volume.sweeps.push_back(std::move(sweep));
  return volume;
}

}  // namespace lockstep::sources
