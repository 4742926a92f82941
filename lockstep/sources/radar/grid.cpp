// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/grid.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

constexpr double kDegree = std::numbers::pi / 180;
constexpr double kFarFromRay = 1.5;  // spacings of rays: further off nothing was measured

// The ray nearest to an azimuth.
class RayFinder {
 public:
  explicit RayFinder(const PolarSweep& sweep) {
    rays_.reserve(sweep.azimuths.size());
    for (size_t i = 0; i < sweep.azimuths.size(); ++i) rays_.push_back({sweep.azimuths[i], static_cast<int64_t>(i)});
    std::stable_sort(rays_.begin(), rays_.end(), [](const Ray& a, const Ray& b) { return a.azimuth < b.azimuth; });
    spacing_ = 360.0 / static_cast<double>(std::max<size_t>(rays_.size(), 1));
  }
  // -1: none is near.
  int64_t nearest(double azimuth) const {
    if (rays_.empty()) return -1;
    const auto next = std::lower_bound(rays_.begin(), rays_.end(), azimuth,
                                       [](const Ray& ray, double angle) { return ray.azimuth < angle; });
    const Ray& after = next == rays_.end() ? rays_.front() : *next;
    const Ray& before = next == rays_.begin() ? rays_.back() : *(next - 1);
    const double to_after = apart(after.azimuth, azimuth), to_before = apart(before.azimuth, azimuth);
    if (std::min(to_after, to_before) > kFarFromRay * spacing_) return -1;
    return to_after <= to_before ? after.number : before.number;
  }

 private:
  struct Ray {
    double azimuth;
    int64_t number;
  };
  static double apart(double a, double b) {
    const double off = std::abs(a - b);
    return std::min(off, 360 - off);
  }
  std::vector<Ray> rays_;
  double spacing_ = 1;
};

float value_at(const PolarSweep& sweep, const RayFinder& rays, double distance, double azimuth) {
  const double gate = std::rint((range_over_ground(distance, sweep.elevation) - sweep.first_gate) / sweep.gate_spacing);
  if (!(gate >= 0) || gate >= static_cast<double>(sweep.gates)) return kNotMeasured;
  const int64_t ray = rays.nearest(azimuth);
  return ray < 0 ? kNotMeasured : sweep.at(ray, static_cast<int64_t>(gate));
}

double bearing(double east, double north) {  // degrees, 0 to 360
  const double angle = std::atan2(east, north) / kDegree;
  return angle < 0 ? angle + 360 : angle;
}

// Metres east and north of the middle of cell `i` of `side`.
double offset_of(int64_t i, const GridShape& shape) {
  return (static_cast<double>(i) - static_cast<double>(shape.side - 1) / 2) * shape.cell;
}

std::vector<float> grid_nearest(const PolarSweep& sweep, const GridShape& shape) {
  const RayFinder rays(sweep);
  std::vector<float> cells;
  cells.reserve(static_cast<size_t>(shape.side * shape.side));
  for (int64_t row = 0; row < shape.side; ++row) {
    for (int64_t column = 0; column < shape.side; ++column) {
      const double east = offset_of(column, shape), north = -offset_of(row, shape);
      cells.push_back(value_at(sweep, rays, std::hypot(east, north), bearing(east, north)));
    }
  }
  return cells;
}

struct CellSum {
  double z = 0;
  int64_t measured = 0;
};

// Sums of Z over the gates of every cell; what is dry adds nothing but itself.
std::vector<CellSum> sums_of_cells(const PolarSweep& sweep, const GridShape& shape) {
  std::vector<CellSum> cells(static_cast<size_t>(shape.side * shape.side));
  std::vector<double> distances;
  distances.reserve(static_cast<size_t>(sweep.gates));
  for (int64_t gate = 0; gate < sweep.gates; ++gate) {
    distances.push_back(
        ground_distance(sweep.first_gate + static_cast<double>(gate) * sweep.gate_spacing, sweep.elevation));
  }
  const double middle = static_cast<double>(shape.side) / 2;
  for (int64_t ray = 0; ray < sweep.rays(); ++ray) {
    const double angle = sweep.azimuths[static_cast<size_t>(ray)] * kDegree;
    const double east = std::sin(angle) / shape.cell, north = std::cos(angle) / shape.cell;
    for (int64_t gate = 0; gate < sweep.gates; ++gate) {
      const float value = sweep.at(ray, gate);
      if (std::isnan(value)) continue;
      const double distance = distances[static_cast<size_t>(gate)];
      const double column = std::floor(middle + east * distance), row = std::floor(middle - north * distance);
      const auto side = static_cast<double>(shape.side);
      if (!(column >= 0 && row >= 0 && column < side && row < side)) continue;
      CellSum& cell = cells[static_cast<size_t>(static_cast<int64_t>(row) * shape.side + static_cast<int64_t>(column))];
      cell.measured += 1;
      if (value != kNoEcho) cell.z += std::pow(10.0, value / 10.0);
    }
  }
  return cells;
}

}  // namespace

double height_of_beam(double range, double elevation) {
  const double sine = std::sin(elevation * kDegree);
  return std::sqrt(range * range + kBentRadius * kBentRadius + 2 * range * kBentRadius * sine) - kBentRadius;
}

double ground_distance(double range, double elevation) {
  return kBentRadius *
         std::asin(range * std::cos(elevation * kDegree) / (kBentRadius + height_of_beam(range, elevation)));
}

double range_over_ground(double distance, double elevation) {
  const double angle = distance / kBentRadius;
  return kBentRadius * std::sin(angle) / std::cos(elevation * kDegree + angle);
}

void check_grid(int64_t height, int64_t width, const std::string& source) {
  constexpr int64_t kMostCells = int64_t{1} << 26;
  if (height > 0 && width > 0 && height <= kMostCells / width) return;
  throw base::Error(base::Blame::user, base::text(source, ": frames of ", width, " x ", height, " cells"),
                    base::text("1 to ", kMostCells, " cells; cut out the part that is forecast"));
}

std::vector<float> grid_sweep(const PolarSweep& sweep, const GridShape& shape, Gridding how) {
  std::vector<float> cells = grid_nearest(sweep, shape);
  if (how == Gridding::nearest) return cells;
  const std::vector<CellSum> sums = sums_of_cells(sweep, shape);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (sums[i].measured == 0) continue;
    const double mean = sums[i].z / static_cast<double>(sums[i].measured);
    cells[i] = mean > 0 ? static_cast<float>(10 * std::log10(mean)) : kNoEcho;
  }
  return cells;
}

std::vector<float> composite(const std::vector<PlacedSweep>& sweeps, double latitude, double longitude,
                             const GridShape& shape) {
  std::vector<float> cells(static_cast<size_t>(shape.side * shape.side), kNotMeasured);
  for (const PlacedSweep& placed : sweeps) {
    if (!std::isfinite(placed.latitude) || !std::isfinite(placed.longitude)) {
      throw base::Error(base::Blame::user, "a radar whose file tells no position cannot be part of a composite",
                        "prepare it alone: files of one site in a folder of their own");
    }
    const RayFinder rays(*placed.sweep);
    const double from = placed.latitude * kDegree;
    for (int64_t i = 0; i < shape.side * shape.side; ++i) {
      // Of the cell: azimuthal equidistant around the middle; then the great circle from the radar.
      const double east = offset_of(i % shape.side, shape), north = -offset_of(i / shape.side, shape);
      const double arc = std::hypot(east, north) / kEarthRadius, course = std::atan2(east, north);
      const double middle = latitude * kDegree;
      const double lat =
          std::asin(std::sin(middle) * std::cos(arc) + std::cos(middle) * std::sin(arc) * std::cos(course));
      const double lon = longitude * kDegree + std::atan2(std::sin(course) * std::sin(arc) * std::cos(middle),
                                                          std::cos(arc) - std::sin(middle) * std::sin(lat));
      const double turn = lon - placed.longitude * kDegree;
      const double y = std::sin(turn) * std::cos(lat);
      const double x = std::cos(from) * std::sin(lat) - std::sin(from) * std::cos(lat) * std::cos(turn);
      const double z = std::sin(from) * std::sin(lat) + std::cos(from) * std::cos(lat) * std::cos(turn);
      const float value = value_at(*placed.sweep, rays, kEarthRadius * std::atan2(std::hypot(x, y), z), bearing(y, x));
      float& cell = cells[static_cast<size_t>(i)];
      if (!std::isnan(value) && (std::isnan(cell) || value > cell)) cell = value;
    }
  }
  return cells;
}

}  // namespace lockstep::sources
