// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/spike.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/text.h"

namespace lockstep::training {
namespace {

constexpr size_t kWindow = 64;
constexpr size_t kLeast = 16;
constexpr double kFitted = 1e-6;  // the median of a set learnt by heart: anything else is far above it

double median(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<int64_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void remember(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > kWindow) values.pop_front();
}

}  // namespace

std::string SpikeDetector::check(double loss, double gradient_norm) {
  if (factor_ <= 0) return "";
  if (losses_.size() >= kLeast) {
    const double usual = median(losses_), usual_norm = median(norms_);
    const bool scatters = usual > kFitted;
    if (scatters && loss > factor_ * usual) {
      return base::text("the loss rose to ", loss, ", ", loss / usual, " times the median of the last ", losses_.size(),
                        " steps");
    }
    if (scatters && usual_norm > kFitted && gradient_norm > factor_ * factor_ * usual_norm) {
      return base::text("the gradient norm rose to ", gradient_norm, ", ", gradient_norm / usual_norm,
                        " times the median of the last ", norms_.size(), " steps");
    }
  }
  remember(losses_, loss);
  remember(norms_, gradient_norm);
  return "";
}

base::Json SpikeDetector::to_json() const {
  base::Json seen = base::Json::object();
  seen["losses"] = base::Json::array_of(losses_);
  seen["norms"] = base::Json::array_of(norms_);
  return seen;
}

void SpikeDetector::load(const base::Json& seen) {
  forget();
  for (const auto& value : seen.at("losses").items()) losses_.push_back(value.as_double());
  for (const auto& value : seen.at("norms").items()) norms_.push_back(value.as_double());
}

}  // namespace lockstep::training
