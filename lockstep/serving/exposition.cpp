// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/exposition.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::serving {
namespace {

constexpr std::array kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0};

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(static_cast<int64_t>(value));
  return base::Json(value).dump(-1);
}

}  // namespace

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  text_ += base::text("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void Exposition::sample(std::string_view name, double value,
                        const std::vector<std::pair<std::string, std::string>>& labels) {
  text_ += name;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += base::text(i == 0 ? "{" : ",", labels[i].first, "=\"", escaped(labels[i].second), "\"");
  }
  text_ += base::text(labels.empty() ? " " : "} ", number_text(value), "\n");
}

void SecondsHistogram::add(double seconds) {
  const std::lock_guard lock(mutex_);
  counts_.resize(kBounds.size() + 1);
  ++counts_[static_cast<size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin())];
  sum_ += seconds;
}

void SecondsHistogram::show(Exposition& on, const std::string& name,
                            const std::vector<std::pair<std::string, std::string>>& labels) const {
  const std::lock_guard lock(mutex_);
  int64_t below = 0;
  for (size_t i = 0; i <= kBounds.size(); ++i) {
    if (!counts_.empty()) below += counts_[i];
    auto with_bound = labels;
    with_bound.emplace_back("le", i < kBounds.size() ? base::text(kBounds[i]) : "+Inf");
    on.sample(name + "_bucket", static_cast<double>(below), with_bound);
  }
  on.sample(name + "_sum", sum_, labels);
  on.sample(name + "_count", static_cast<double>(below), labels);
}

}  // namespace lockstep::serving
