// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::serving {

// Text for Prometheus, format 0.0.4: families of samples, each with its help and type.
class Exposition {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view name, double value, const std::vector<std::pair<std::string, std::string>>& labels = {});
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Counts of durations below fixed bounds, for any thread.
class SecondsHistogram {
 public:
  void add(double seconds);
  // `name`_bucket, _sum and _count; the labels stand before the bound.
  void show(Exposition& on, const std::string& name,
            const std::vector<std::pair<std::string, std::string>>& labels) const;

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> counts_;  // by bound, the last: beyond all of them
  double sum_ = 0;
};

}  // namespace lockstep::serving
