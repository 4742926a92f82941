// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/forecast_score.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

double share_of(int64_t part, int64_t whole) {
  return whole == 0 ? std::nan("") : static_cast<double>(part) / static_cast<double>(whole);
}

// Sums over all pixels above and to the left: [height + 1, width + 1].
std::vector<int64_t> integral_of(std::span<const uint8_t> field, int64_t height, int64_t width) {
  std::vector<int64_t> sums(static_cast<size_t>((height + 1) * (width + 1)));
  for (int64_t y = 0; y < height; ++y) {
    int64_t row = 0;
    for (int64_t x = 0; x < width; ++x) {
      row += field[static_cast<size_t>(y * width + x)];
      sums[static_cast<size_t>((y + 1) * (width + 1) + x + 1)] =
          sums[static_cast<size_t>(y * (width + 1) + x + 1)] + row;
    }
  }
  return sums;
}

}  // namespace

void RainCounts::add(const RainCounts& other) {
  hits += other.hits;
  misses += other.misses;
  false_alarms += other.false_alarms;
  dry += other.dry;
}

double RainCounts::pod() const {
  return share_of(hits, hits + misses);
}

double RainCounts::far() const {
  return share_of(false_alarms, hits + false_alarms);
}

double RainCounts::csi() const {
  return share_of(hits, hits + misses + false_alarms);
}

double RainCounts::ets() const {
  const auto all = static_cast<double>(hits + misses + false_alarms + dry);
  const double chance = static_cast<double>(hits + misses) * static_cast<double>(hits + false_alarms) / all;
  const double whole = static_cast<double>(hits + misses + false_alarms) - chance;
  return whole == 0 || all == 0 ? std::nan("") : (static_cast<double>(hits) - chance) / whole;
}

void FractionSums::add(const FractionSums& other) {
  apart += other.apart;
  forecast += other.forecast;
  seen += other.seen;
}

double FractionSums::score() const {
  return forecast + seen == 0
             ? std::nan("")
             : 1 - static_cast<double>(apart) / (static_cast<double>(forecast) + static_cast<double>(seen));
}

FractionSums fraction_sums(std::span<const uint8_t> forecast, std::span<const uint8_t> seen, int64_t height,
                           int64_t width, int64_t side) {
  const auto f = integral_of(forecast, height, width), o = integral_of(seen, height, width);
  const int64_t before = side / 2, after = side - before;  // of 5: from 2 before to 2 behind
  FractionSums sums;
  for (int64_t y = 0; y < height; ++y) {
    const int64_t top = std::max<int64_t>(y - before, 0), bottom = std::min(y + after, height);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t left = std::max<int64_t>(x - before, 0), right = std::min(x + after, width);
      const auto inside = [&](const std::vector<int64_t>& all) {
        const auto at = [&](int64_t row, int64_t column) {
          return all[static_cast<size_t>(row * (width + 1) + column)];
        };
        return at(bottom, right) - at(top, right) - at(bottom, left) + at(top, left);
      };
      const int64_t in_forecast = inside(f), in_seen = inside(o);
      sums.apart += (in_forecast - in_seen) * (in_forecast - in_seen);
      sums.forecast += in_forecast * in_forecast;
      sums.seen += in_seen * in_seen;
    }
  }
  return sums;
}

PixelLoss::PixelLoss(const spec::Nowcast& how) : kind_(how.loss) {
  const RainLaw law{how.zr_factor, how.zr_exponent};
  // Shi et al. 2017: weights 1, 2, 5, 10, 30 from 0, 2, 5, 10, 30 mm/h on.
  steps_ = {{{pixel_of_dbz(law.dbz(2)), 1},
             {pixel_of_dbz(law.dbz(5)), 3},
             {pixel_of_dbz(law.dbz(10)), 5},
             {pixel_of_dbz(law.dbz(30)), 20}}};
}

double PixelLoss::operator()(double forecast, double seen) const {
  const double off = forecast - seen;
  switch (kind_) {
    case spec::ForecastLoss::mse:
      return off * off;
    case spec::ForecastLoss::mae:
      return std::abs(off);
    case spec::ForecastLoss::log_cosh:
      return std::abs(off) + std::log1p(std::exp(-2 * std::abs(off))) - std::log(2.0);
    case spec::ForecastLoss::weighted:
      break;
  }
  double weight = 1;
  for (const Step& step : steps_) weight += seen >= step.from ? step.more : 0;
  return weight * (off * off + std::abs(off));
}

ForecastCounts::ForecastCounts(const spec::Nowcast& how) {
  const RainLaw law{how.zr_factor, how.zr_exponent};
  for (const double rate : how.thresholds) pixels_.push_back(static_cast<float>(pixel_of_dbz(law.dbz(rate))));
  for (const double side : how.scales) scales_.push_back(static_cast<int64_t>(side));
  rain_.resize(static_cast<size_t>(how.outputs) * pixels_.size());
  fractions_.resize(rain_.size() * scales_.size());
}

void ForecastCounts::add(int64_t lead, std::span<const float> forecast, std::span<const float> seen, int64_t height,
                         int64_t width) {
  std::vector<uint8_t> wet_forecast(forecast.size()), wet_seen(forecast.size());
  for (size_t t = 0; t < pixels_.size(); ++t) {
    RainCounts& counts = rain_[index(lead, t)];
    for (size_t i = 0; i < forecast.size(); ++i) {
      const bool measured = seen[i] >= 0;
      wet_forecast[i] = measured && forecast[i] >= pixels_[t] ? 1 : 0;
      wet_seen[i] = measured && seen[i] >= pixels_[t] ? 1 : 0;
      if (measured) counts.add(wet_forecast[i] != 0, wet_seen[i] != 0);
    }
    for (size_t s = 0; s < scales_.size(); ++s) {
      fractions_[index(lead, t) * scales_.size() + s].add(
          fraction_sums(wet_forecast, wet_seen, height, width, scales_[s]));
    }
  }
}

size_t ForecastCounts::bytes() const {
  return rain_.size() * sizeof(RainCounts) + fractions_.size() * sizeof(FractionSums);
}

std::string ForecastCounts::pack() const {
  std::string all(reinterpret_cast<const char*>(rain_.data()), rain_.size() * sizeof(RainCounts));
  all.append(reinterpret_cast<const char*>(fractions_.data()), fractions_.size() * sizeof(FractionSums));
  return all;
}

void ForecastCounts::merge(std::string_view packed) {
  base::ensure(packed.size() == bytes(), "ranks score with the same thresholds");
  const auto add_all = [&packed](auto& own) {
    for (auto& one : own) {
      std::remove_reference_t<decltype(one)> other;
      std::memcpy(&other, packed.data(), sizeof other);
      packed.remove_prefix(sizeof other);
      one.add(other);
    }
  };
  add_all(rain_);
  add_all(fractions_);
}

const RainCounts& ForecastCounts::rain(int64_t lead, size_t threshold) const {
  return rain_[index(lead, threshold)];
}

RainCounts ForecastCounts::rain_of_all_leads(size_t threshold) const {
  RainCounts all;
  for (size_t i = threshold; i < rain_.size(); i += pixels_.size()) all.add(rain_[i]);
  return all;
}

const FractionSums& ForecastCounts::fractions(int64_t lead, size_t threshold, size_t scale) const {
  return fractions_[index(lead, threshold) * scales_.size() + scale];
}

}  // namespace lockstep::task
