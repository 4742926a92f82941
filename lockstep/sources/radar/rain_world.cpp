// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/rain_world.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/random.h"
#include "lockstep/sources/radar/grid.h"

namespace lockstep::sources {
namespace {

constexpr double kWorldStart = 1716292800;           // 2024-05-21 12:00
constexpr double kHalfSide = 200;                    // km: where cells are born
constexpr double kLeastLife = 100, kMostLife = 200;  // minutes
constexpr int64_t kCellsPerHour = 26;
constexpr double kLeastDbz = 5;  // weaker echoes are none

struct RainCell {
  double birth, life;     // minutes
  double x, y;            // km, at its birth
  double radius;          // km, at its height
  double peak;            // dBZ
  double stretch, angle;  // of its shape
};

struct RainEvent {
  double across, down;  // km a minute
  double turn;          // radians a minute
  std::vector<RainCell> cells;
};

RainEvent event_of(int64_t seed, int64_t number, double minutes) {
  base::Random random(base::derive_seed(static_cast<uint64_t>(seed), "rain world"), 0, static_cast<uint64_t>(number));
  RainEvent event;
  const double speed = random.uniform(0.3, 0.8), course = random.uniform(0, 2 * std::numbers::pi);
  event.across = speed * std::cos(course);
  event.down = speed * std::sin(course);
  event.turn = random.uniform(-0.006, 0.006);
  const double hours = (minutes + kMostLife) / 60;
  const auto count = static_cast<int64_t>(hours * static_cast<double>(kCellsPerHour) * random.uniform(0.7, 1.3));
  for (int64_t i = 0; i < count; ++i) {
    RainCell cell{};
    cell.birth = random.uniform(-kMostLife, minutes);
    cell.life = random.uniform(kLeastLife, kMostLife);
    cell.x = random.uniform(-kHalfSide, kHalfSide);
    cell.y = random.uniform(-kHalfSide, kHalfSide);
    cell.radius = random.uniform(7, 13);
    cell.peak = random.uniform(38, 56);
    cell.stretch = random.uniform(1, 1.8);
    cell.angle = random.uniform(0, std::numbers::pi);
    event.cells.push_back(cell);
  }
  return event;
}

// How far the wind has carried something since `from`, up to `to` minutes.
struct Carried {
  double x, y;
};
Carried carried(const RainEvent& event, double from, double to) {
  if (std::abs(event.turn) < 1e-9) return {event.across * (to - from), event.down * (to - from)};
  const double a = event.turn * from, b = event.turn * to;
  const double sine = (std::sin(b) - std::sin(a)) / event.turn, cosine = (std::cos(a) - std::cos(b)) / event.turn;
  return {event.across * sine - event.down * cosine, event.across * cosine + event.down * sine};
}

struct Bump {  // a cell at one moment
  double x, y, radius, peak, stretch, cosine, sine;
};

std::vector<Bump> bumps_at(const RainEvent& event, double minute) {
  std::vector<Bump> bumps;
  for (const RainCell& cell : event.cells) {
    const double age = (minute - cell.birth) / cell.life;
    if (age <= 0 || age >= 1) continue;
    const double strength = std::sin(std::numbers::pi * age);
    const Carried moved = carried(event, cell.birth, minute);
    bumps.push_back({cell.x + moved.x, cell.y + moved.y, cell.radius * (0.5 + 0.5 * strength), cell.peak * strength,
                     cell.stretch, std::cos(cell.angle), std::sin(cell.angle)});
  }
  return bumps;
}

float dbz_at(const std::vector<Bump>& bumps, double x, double y) {
  double most = -100;
  for (const Bump& bump : bumps) {
    const double dx = x - bump.x, dy = y - bump.y;
    const double along = (dx * bump.cosine + dy * bump.sine) / bump.stretch, over = -dx * bump.sine + dy * bump.cosine;
    const double square = (along * along + over * over) / (bump.radius * bump.radius);
    if (square < 16) most = std::max(most, bump.peak * std::exp(-square / 2));
  }
  return most < kLeastDbz ? kNoEcho : static_cast<float>(most);
}

}  // namespace

double RainWorld::seconds_at(int64_t index) const {
  const int64_t event = index / frames, frame = index % frames;
  const double event_minutes = static_cast<double>(frames) * minutes + pause;
  return kWorldStart + 60 * (static_cast<double>(event) * event_minutes + static_cast<double>(frame) * minutes);
}

RadarVolume RainWorld::volume(int64_t index, int64_t range) const {
  constexpr int64_t kRays = 360;
  constexpr double kDegrees = std::numbers::pi / 180;
  const RainEvent event = event_of(seed, index / frames, static_cast<double>(frames) * minutes);
  const std::vector<Bump> bumps = bumps_at(event, static_cast<double>(index % frames) * minutes);
  RadarVolume volume;
  volume.site = "KSYN";
  volume.seconds = seconds_at(index);
  volume.latitude = 47.5;
  volume.longitude = -122.5;
  volume.altitude = 150;
  PolarSweep sweep;
  sweep.number = 1;
  sweep.elevation = 0.5;
  sweep.seconds = volume.seconds;
  sweep.first_gate = 500;
  sweep.gates = range;
  sweep.values.reserve(static_cast<size_t>(kRays * range));
  for (int64_t ray = 0; ray < kRays; ++ray) {
    const double azimuth = static_cast<double>(ray) + 0.5;
    sweep.azimuths.push_back(azimuth);
    for (int64_t gate = 0; gate < range; ++gate) {
      const double distance =
          ground_distance(sweep.first_gate + static_cast<double>(gate) * sweep.gate_spacing, sweep.elevation) / 1000;
      sweep.values.push_back(
          dbz_at(bumps, distance * std::sin(azimuth * kDegrees), distance * std::cos(azimuth * kDegrees)));
    }
  }
  volume.sweeps.push_back(std::move(sweep));
  return volume;
}

}  // namespace lockstep::sources
