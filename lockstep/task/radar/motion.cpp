// SPDX-License-Identifier: Apache-2.0
// Sparse optical flow as pysteps has it (Pulkkinen et al. 2019, gmd-12-4185), which takes its parts from OpenCV:
// goodFeaturesToTrack and calcOpticalFlowPyrLK (Bouguet 2001).
#include "lockstep/task/radar/motion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

constexpr int64_t kMostCorners = 1000, kCornerBlock = 5, kMostWindow = 50, kLevels = 3, kLkSteps = 10;
constexpr double kCornerQuality = 0.01, kCornerDistance = 10, kLkEnough = 0.01, kLeastEigen = 1e-4;
constexpr double kOutlierDeviations = 3, kCellSize = 20;
constexpr size_t kNeighbours = 30, kSpreadFrom = 20;
constexpr double kSpreadPower = 0.5, kSpreadOffset = 0.5;

struct Vector {
  double x = 0, y = 0, across = 0, down = 0;
};

int64_t inside(int64_t i, int64_t size) {  // mirrored at the edges, as OpenCV does: 1 0 1 2
  if (size == 1) return 0;
  while (i < 0 || i >= size) i = i < 0 ? -i : 2 * size - 2 - i;
  return i;
}

// Opening, 3 x 3: single cells of noise go.
Plane opened(const Plane& from) {
  const auto pass = [](const Plane& plane, auto better) {
    Plane out(plane.height, plane.width);
    for (int64_t y = 0; y < plane.height; ++y) {
      for (int64_t x = 0; x < plane.width; ++x) {
        float best = plane.at(y, x);
        for (int64_t v = std::max<int64_t>(y - 1, 0); v <= std::min(y + 1, plane.height - 1); ++v) {
          for (int64_t u = std::max<int64_t>(x - 1, 0); u <= std::min(x + 1, plane.width - 1); ++u) {
            best = better(best, plane.at(v, u));
          }
        }
        out.at(y, x) = best;
      }
    }
    return out;
  };
  return pass(pass(from, [](float a, float b) { return std::min(a, b); }),
              [](float a, float b) { return std::max(a, b); });
}

struct Slopes {
  Plane across, down;
};

// Scharr's, over 32: a slope of 1 a cell gives 1.
Slopes slopes_of(const Plane& plane) {
  Slopes slopes{Plane(plane.height, plane.width), Plane(plane.height, plane.width)};
  for (int64_t y = 0; y < plane.height; ++y) {
    const int64_t up = inside(y - 1, plane.height), down = inside(y + 1, plane.height);
    for (int64_t x = 0; x < plane.width; ++x) {
      const int64_t left = inside(x - 1, plane.width), right = inside(x + 1, plane.width);
      slopes.across.at(y, x) =
          (3 * (plane.at(up, right) - plane.at(up, left)) + 10 * (plane.at(y, right) - plane.at(y, left)) +
           3 * (plane.at(down, right) - plane.at(down, left))) /
          32;
      slopes.down.at(y, x) =
          (3 * (plane.at(down, left) - plane.at(up, left)) + 10 * (plane.at(down, x) - plane.at(up, x)) +
           3 * (plane.at(down, right) - plane.at(up, right))) /
          32;
    }
  }
  return slopes;
}

// Half the size, smoothed by 1 4 6 4 1.
Plane halved(const Plane& plane) {
  constexpr std::array<float, 5> kSmooth = {1.0F / 16, 4.0F / 16, 6.0F / 16, 4.0F / 16, 1.0F / 16};
  const int64_t height = (plane.height + 1) / 2, width = (plane.width + 1) / 2;
  Plane rows(plane.height, width), out(height, width);
  for (int64_t y = 0; y < plane.height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      float sum = 0;
      for (int64_t k = 0; k < 5; ++k)
        sum += kSmooth[static_cast<size_t>(k)] * plane.at(y, inside(2 * x + k - 2, plane.width));
      rows.at(y, x) = sum;
    }
  }
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      float sum = 0;
      for (int64_t k = 0; k < 5; ++k)
        sum += kSmooth[static_cast<size_t>(k)] * rows.at(inside(2 * y + k - 2, plane.height), x);
      out.at(y, x) = sum;
    }
  }
  return out;
}

// The smaller eigenvalue of the slopes' products, summed over a block.
Plane corner_strength(const Plane& plane) {
  const Slopes slopes = slopes_of(plane);
  Plane strength(plane.height, plane.width);
  constexpr int64_t kHalf = kCornerBlock / 2;
  for (int64_t y = 0; y < plane.height; ++y) {
    for (int64_t x = 0; x < plane.width; ++x) {
      double xx = 0, xy = 0, yy = 0;
      for (int64_t v = y - kHalf; v <= y + kHalf; ++v) {
        for (int64_t u = x - kHalf; u <= x + kHalf; ++u) {
          const int64_t row = inside(v, plane.height), column = inside(u, plane.width);
          const double a = slopes.across.at(row, column), b = slopes.down.at(row, column);
          xx += a * a;
          xy += a * b;
          yy += b * b;
        }
      }
      strength.at(y, x) = static_cast<float>((xx + yy) / 2 - std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy));
    }
  }
  return strength;
}

struct Corner {
  int64_t x, y;
  float strength;
};

std::vector<Corner> corners_of(const Plane& plane) {
  const Plane strength = corner_strength(plane);
  const float most = *std::max_element(strength.values.begin(), strength.values.end());
  std::vector<Corner> found, kept;
  for (int64_t y = 1; y + 1 < plane.height; ++y) {
    for (int64_t x = 1; x + 1 < plane.width; ++x) {
      const float here = strength.at(y, x);
      if (here <= 0 || here < kCornerQuality * most) continue;
      bool is_peak = true;
      for (int64_t v = y - 1; v <= y + 1 && is_peak; ++v) {
        for (int64_t u = x - 1; u <= x + 1; ++u) is_peak &= strength.at(v, u) <= here;
      }
      if (is_peak) found.push_back({x, y, here});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Corner& a, const Corner& b) { return a.strength > b.strength; });
  for (const Corner& corner : found) {
    const bool is_apart = std::all_of(kept.begin(), kept.end(), [&](const Corner& other) {
      const auto x = static_cast<double>(corner.x - other.x), y = static_cast<double>(corner.y - other.y);
      return x * x + y * y >= kCornerDistance * kCornerDistance;
    });
    if (is_apart) kept.push_back(corner);
    if (std::ssize(kept) == kMostCorners) break;
  }
  return kept;
}

struct Level {
  Plane plane;
  Slopes slopes;
};

std::vector<Level> pyramid(const Plane& plane, int64_t levels) {
  std::vector<Level> all;
  all.push_back({plane, slopes_of(plane)});
  while (std::ssize(all) < levels && std::min(all.back().plane.height, all.back().plane.width) >= 16) {
    Plane half = halved(all.back().plane);
    Slopes slopes = slopes_of(half);
    all.push_back({std::move(half), std::move(slopes)});
  }
  return all;
}

// Moves `to` by Newton's steps until the window of `second` around it looks like that of `first` around (x, y). False:
// the window has no corner, or it left the field.
bool follow(const Level& first, const Plane& second, double x, double y, int64_t window, double& to_x, double& to_y) {
  const double half = static_cast<double>(window - 1) / 2;
  double xx = 0, xy = 0, yy = 0;
  std::vector<std::array<double, 3>> seen;  // value, slopes
  seen.reserve(static_cast<size_t>(window * window));
  for (int64_t v = 0; v < window; ++v) {
    for (int64_t u = 0; u < window; ++u) {
      const double row = y - half + static_cast<double>(v), column = x - half + static_cast<double>(u);
      const double a = first.slopes.across.between(row, column), b = first.slopes.down.between(row, column);
      seen.push_back({first.plane.between(row, column), a, b});
      xx += a * a;
      xy += a * b;
      yy += b * b;
    }
  }
  const auto count = static_cast<double>(window * window);
  const double least = (xx + yy) / 2 - std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
  const double determinant = xx * yy - xy * xy;
  if (least / count < kLeastEigen || determinant <= 0) return false;
  for (int64_t step = 0; step < kLkSteps; ++step) {
    const bool is_there = to_x > -half && to_y > -half && to_x < static_cast<double>(second.width) + half &&
                          to_y < static_cast<double>(second.height) + half;
    if (!is_there) return false;
    double bx = 0, by = 0;
    size_t i = 0;
    for (int64_t v = 0; v < window; ++v) {
      for (int64_t u = 0; u < window; ++u, ++i) {
        const double off =
            seen[i][0] - second.between(to_y - half + static_cast<double>(v), to_x - half + static_cast<double>(u));
        bx += off * seen[i][1];
        by += off * seen[i][2];
      }
    }
    const double dx = (yy * bx - xy * by) / determinant, dy = (xx * by - xy * bx) / determinant;
    to_x += dx;
    to_y += dy;
    if (dx * dx + dy * dy < kLkEnough * kLkEnough) break;
  }
  return true;
}

std::vector<Vector> vectors_between(const Plane& first, const Plane& second) {
  const std::vector<Corner> corners = corners_of(first);
  if (corners.empty()) return {};
  const int64_t window = std::clamp<int64_t>(std::min(first.height, first.width) / 4, 5, kMostWindow);
  const std::vector<Level> a = pyramid(first, kLevels + 1), b = pyramid(second, kLevels + 1);
  std::vector<Vector> vectors;
  vectors.reserve(corners.size());
  for (const Corner& corner : corners) {
    double to_x = 0, to_y = 0;
    bool good = true;
    for (size_t level = a.size(); level-- > 0;) {
      const double scale = std::pow(0.5, static_cast<double>(level));
      const double x = static_cast<double>(corner.x) * scale, y = static_cast<double>(corner.y) * scale;
      if (level + 1 == a.size()) {
        to_x = x;
        to_y = y;
      } else {
        to_x *= 2;
        to_y *= 2;
      }
      good = follow(a[level], b[level].plane, x, y, window, to_x, to_y);
      if (!good && level > 0) {  // coarser levels may have nothing to see
        good = true;
        continue;
      }
    }
    if (!good) continue;
    vectors.push_back({static_cast<double>(corner.x), static_cast<double>(corner.y),
                       to_x - static_cast<double>(corner.x), to_y - static_cast<double>(corner.y)});
  }
  return vectors;
}

// Its nearest others, nearest first.
std::vector<size_t> nearest_to(const std::vector<Vector>& vectors, double x, double y, size_t most, size_t except) {
  std::vector<std::pair<double, size_t>> all;
  all.reserve(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (i == except) continue;
    const double dx = vectors[i].x - x, dy = vectors[i].y - y;
    all.emplace_back(dx * dx + dy * dy, i);
  }
  const size_t count = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(count), all.end());
  std::vector<size_t> nearest;
  nearest.reserve(count);
  for (size_t i = 0; i < count; ++i) nearest.push_back(all[i].second);
  return nearest;
}

// Moves unlike its neighbours: by Mahalanobis' distance from their mean.
bool is_outlier(const std::vector<Vector>& vectors, size_t i) {
  const auto near = nearest_to(vectors, vectors[i].x, vectors[i].y, kNeighbours, i);
  if (near.size() < 3) return false;
  double mean_a = 0, mean_d = 0;
  for (const size_t k : near) {
    mean_a += vectors[k].across;
    mean_d += vectors[k].down;
  }
  const auto count = static_cast<double>(near.size());
  mean_a /= count;
  mean_d /= count;
  double aa = 0, ad = 0, dd = 0;
  for (const size_t k : near) {
    const double a = vectors[k].across - mean_a, d = vectors[k].down - mean_d;
    aa += a * a / (count - 1);
    ad += a * d / (count - 1);
    dd += d * d / (count - 1);
  }
  const double determinant = aa * dd - ad * ad;
  const double a = vectors[i].across - mean_a, d = vectors[i].down - mean_d;
  if (determinant <= 1e-12) return false;
  const double square = (dd * a * a - 2 * ad * a * d + aa * d * d) / determinant;
  return square > kOutlierDeviations * kOutlierDeviations;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// One vector, the median, for each cell of the grid that has any.
std::vector<Vector> declustered(const std::vector<Vector>& vectors) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, Vector>> keyed;
  keyed.reserve(vectors.size());
  for (const Vector& one : vectors) {
    keyed.push_back(
        {{static_cast<int64_t>(std::floor(one.y / kCellSize)), static_cast<int64_t>(std::floor(one.x / kCellSize))},
         one});
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Vector> cells;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin;
    std::array<std::vector<double>, 4> parts;
    for (; end < keyed.size() && keyed[end].first == keyed[begin].first; ++end) {
      const Vector& one = keyed[end].second;
      for (const auto& [part, value] :
           {std::pair<size_t, double>{0, one.x}, {1, one.y}, {2, one.across}, {3, one.down}})
        parts[part].push_back(value);
    }
    cells.push_back({median_of(parts[0]), median_of(parts[1]), median_of(parts[2]), median_of(parts[3])});
    begin = end;
  }
  return cells;
}

Motion spread(const std::vector<Vector>& vectors, int64_t height, int64_t width) {
  Motion motion{Plane(height, width), Plane(height, width)};
  if (vectors.empty()) return motion;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto near =
          nearest_to(vectors, static_cast<double>(x), static_cast<double>(y), kSpreadFrom, vectors.size());
      double across = 0, down = 0, weights = 0;
      for (const size_t k : near) {
        const double away = std::hypot(vectors[k].x - static_cast<double>(x), vectors[k].y - static_cast<double>(y));
        const double weight = 1 / std::pow(away + kSpreadOffset, kSpreadPower);
        across += weight * vectors[k].across;
        down += weight * vectors[k].down;
        weights += weight;
      }
      motion.across.at(y, x) = static_cast<float>(across / weights);
      motion.down.at(y, x) = static_cast<float>(down / weights);
    }
  }
  return motion;
}

// 0 to 255, as OpenCV's 8-bit images are; the thresholds of corners count on it.
std::vector<Plane> scaled(std::span<const Plane> frames) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (const Plane& frame : frames) {
    const auto [least, most] = std::minmax_element(frame.values.begin(), frame.values.end());
    low = std::min(low, *least);
    high = std::max(high, *most);
  }
  std::vector<Plane> all;
  all.reserve(frames.size());
  for (const Plane& frame : frames) {
    Plane plane = frame;
    for (float& value : plane.values) value = high > low ? std::round((value - low) / (high - low) * 255) : 0;
    all.push_back(opened(plane));
  }
  return all;
}

}  // namespace

float Plane::between(double y, double x) const {
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const auto v = static_cast<float>(y - static_cast<double>(top)),
             u = static_cast<float>(x - static_cast<double>(left));
  return (1 - v) * ((1 - u) * at(top, left) + u * at(top, right)) +
         v * ((1 - u) * at(bottom, left) + u * at(bottom, right));
}

Motion find_motion(std::span<const Plane> frames) {
  base::ensure(frames.size() > 1, "motion is seen in two frames or more");
  const std::vector<Plane> planes = scaled(frames);
  std::vector<Vector> all;
  for (size_t i = 1; i < planes.size(); ++i) {
    const auto some = vectors_between(planes[i - 1], planes[i]);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<Vector> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_outlier(all, i)) kept.push_back(all[i]);
  }
  return spread(declustered(kept), frames[0].height, frames[0].width);
}

std::vector<Plane> carry_on(const Plane& last, const Motion& motion, int64_t count, float outside) {
  Plane from_x(last.height, last.width), from_y(last.height, last.width);  // how far a cell's origin lies off it
  std::vector<Plane> frames;
  frames.reserve(static_cast<size_t>(count));
  for (int64_t frame = 0; frame < count; ++frame) {
    Plane now(last.height, last.width, outside);
    for (int64_t y = 0; y < last.height; ++y) {
      for (int64_t x = 0; x < last.width; ++x) {
        const double row = static_cast<double>(y) + from_y.at(y, x), column = static_cast<double>(x) + from_x.at(y, x);
        // The motion half a frame before, found by three rounds.
        double across = motion.across.between(row, column), down = motion.down.between(row, column);
        for (int round = 0; round < 3; ++round) {
          const double half_row = row - down / 2, half_column = column - across / 2;
          across = motion.across.between(half_row, half_column);
          down = motion.down.between(half_row, half_column);
        }
        from_x.at(y, x) -= static_cast<float>(across);
        from_y.at(y, x) -= static_cast<float>(down);
        const double source_row = static_cast<double>(y) + from_y.at(y, x),
                     source_column = static_cast<double>(x) + from_x.at(y, x);
        if (source_row < 0 || source_column < 0 || source_row > static_cast<double>(last.height - 1) ||
            source_column > static_cast<double>(last.width - 1))
          continue;
        now.at(y, x) = last.between(source_row, source_column);
      }
    }
    frames.push_back(std::move(now));
  }
  return frames;
}

}  // namespace lockstep::task
