// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/spec/job.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::task {

// Rain or not, forecast and seen, pixel by pixel: what scores of forecasts are made of (WMO-No. 1485). Whole numbers,
// so that the order of adding does not matter.
struct RainCounts {
  int64_t hits = 0, misses = 0, false_alarms = 0, dry = 0;

  void add(bool forecast, bool seen) { ++(forecast ? seen ? hits : false_alarms : seen ? misses : dry); }
  void add(const RainCounts& other);
  double pod() const;  // share of the rain that was forecast
  double far() const;  // share of what was forecast that did not come
  double csi() const;  // threat score
  double ets() const;  // the same beyond chance (Gilbert)
  bool operator==(const RainCounts&) const = default;
};

// Sums of the fractions skill score (Roberts and Lean 2008), in counts of a neighbourhood's pixels.
struct FractionSums {
  int64_t apart = 0, forecast = 0, seen = 0;  // of squares: of the difference, of each

  void add(const FractionSums& other);
  double score() const;
  bool operator==(const FractionSums&) const = default;
};
// `forecast` and `seen`: 0 or 1, [height, width]. What lies outside of the field is dry; of an even side the
// neighbourhood reaches further to the left and up.
FractionSums fraction_sums(std::span<const uint8_t> forecast, std::span<const uint8_t> seen, int64_t height,
                           int64_t width, int64_t side);

// What a job's loss pays for a pixel, `seen` as pixels are (frame_strip.h).
class PixelLoss {
 public:
  explicit PixelLoss(const spec::Nowcast& how);
  double operator()(double forecast, double seen) const;
  // Of `weighted`: what is added to the weight of 1 from each of these pixel values on.
  struct Step {
    double from = 0, more = 0;
  };
  const std::array<Step, 4>& steps() const { return steps_; }

 private:
  spec::ForecastLoss kind_;
  std::array<Step, 4> steps_;
};

// The forecasts of one way to forecast, over all samples: by lead time, threshold, and scale.
class ForecastCounts {
 public:
  explicit ForecastCounts(const spec::Nowcast& how);
  // Pixels of one lead time; those that were not measured (`seen` below 0) count for nothing.
  void add(int64_t lead, std::span<const float> forecast, std::span<const float> seen, int64_t height, int64_t width);
  std::string pack() const;
  void merge(std::string_view packed);

  const RainCounts& rain(int64_t lead, size_t threshold) const;
  RainCounts rain_of_all_leads(size_t threshold) const;
  const FractionSums& fractions(int64_t lead, size_t threshold, size_t scale) const;
  size_t bytes() const;

 private:
  size_t index(int64_t lead, size_t threshold) const { return static_cast<size_t>(lead) * pixels_.size() + threshold; }

  std::vector<float> pixels_;            // the thresholds, as pixels
  std::vector<int64_t> scales_;          // sides
  std::vector<RainCounts> rain_;         // [leads, thresholds]
  std::vector<FractionSums> fractions_;  // [leads, thresholds, scales]
};

}  // namespace lockstep::task
