// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/volume.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

constexpr double kSameAngle = 0.3;  // degrees: a radar repeats its lowest angles within this
constexpr double kWholeTurn = 350;  // degrees that rays must cover

// Degrees from its first ray around to its last, the widest gap between two rays left out.
double covered(const PolarSweep& sweep) {
  if (sweep.azimuths.size() < 2) return 0;
  std::vector<double> sorted = sweep.azimuths;
  std::sort(sorted.begin(), sorted.end());
  double open = 360 - (sorted.back() - sorted.front());
  for (size_t i = 1; i < sorted.size(); ++i) open = std::max(open, sorted[i] - sorted[i - 1]);
  return 360 - open;
}

}  // namespace

const PolarSweep& RadarVolume::lowest(const std::string& source) const {
  const PolarSweep* best = nullptr;
  const auto rank = [](const PolarSweep& sweep) { return (sweep.has_velocity ? 0 : 1) + (sweep.has_zdr ? 1 : 0); };
  double angle = std::numeric_limits<double>::infinity();
  for (const PolarSweep& sweep : sweeps) angle = std::min(angle, sweep.elevation);
  for (const PolarSweep& sweep : sweeps) {
    if (sweep.elevation > angle + kSameAngle || covered(sweep) < kWholeTurn) continue;
    if (!best || rank(sweep) > rank(*best)) best = &sweep;
  }
  if (best) return *best;
  std::string what = sweeps.empty() ? "no sweep with reflectivity in it"
                                    : base::text("its lowest sweep is missing or in part: ", sweeps.front().rays(),
                                                 " rays over ", std::lround(covered(sweeps.front())), " degrees at ",
                                                 std::round(sweeps.front().elevation * 100) / 100);
  if (!fault.empty()) what += base::text("; ", fault);
  throw base::Error(base::Blame::user, base::text(source, ": ", what), "fetch the file again, or leave it out");
}

std::string moment_text(double seconds) {
  if (!std::isfinite(seconds) || std::abs(seconds) > 1e11) return "no time";
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char words[40];
  std::strftime(words, sizeof words, "%Y-%m-%d %H:%M:%S", &parts);
  return words;
}

double moment_of(const std::string& date, const std::string& time) {
  const auto digits = [](const std::string& word) {
    return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (date.size() != 8 || time.size() < 4 || time.size() > 6 || !digits(date) || !digits(time)) return kNotMeasured;
  const auto number = [](const std::string& word, size_t at, size_t length) {
    return at < word.size() ? std::atoi(word.substr(at, length).c_str()) : 0;
  };
  std::tm parts{};
  parts.tm_year = number(date, 0, 4) - 1900;
  parts.tm_mon = number(date, 4, 2) - 1;
  parts.tm_mday = number(date, 6, 2);
  parts.tm_hour = number(time, 0, 2);
  parts.tm_min = number(time, 2, 2);
  parts.tm_sec = number(time, 4, 2);
  if (parts.tm_mon < 0 || parts.tm_mon > 11 || parts.tm_mday < 1 || parts.tm_mday > 31) return kNotMeasured;
  return static_cast<double>(::timegm(&parts));
}

}  // namespace lockstep::sources
