// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/sparkline.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lockstep::watching {
namespace {

constexpr const char* kBars[] = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr const char* kMarks[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
constexpr size_t kLevels = std::size(kBars);

}  // namespace

std::string sparkline(const std::vector<double>& values, int width, Letters letters) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double each) { return std::isfinite(each); });
  const size_t columns = std::min(finite.size(), static_cast<size_t>(std::max(0, width)));
  std::vector<double> means;
  means.reserve(columns);
  for (size_t c = 0; c < columns; ++c) {
    const size_t from = c * finite.size() / columns, to = (c + 1) * finite.size() / columns;
    double sum = 0;
    for (size_t i = from; i < to; ++i) sum += finite[i];
    means.push_back(sum / static_cast<double>(to - from));
  }
  if (means.empty()) return "";
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const double reach = *high - *low;
  std::string line;
  for (const double mean : means) {
    const double height = reach > 0 ? (mean - *low) / reach : 0.5;
    const auto level = std::min(kLevels - 1, static_cast<size_t>(height * kLevels));
    line += letters == Letters::unicode ? kBars[level] : kMarks[level];
  }
  return line;
}

std::string progress_bar(double share, int width, Letters letters) {
  const double known = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  const int done = static_cast<int>(std::floor(known * width));
  std::string bar;
  for (int i = 0; i < width; ++i) {
    if (letters == Letters::unicode) {
      bar += i < done ? "\u2588" : "\u2591";
    } else {
      bar += i < done ? "#" : ".";
    }
  }
  return bar;
}

}  // namespace lockstep::watching
