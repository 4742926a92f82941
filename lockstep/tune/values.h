// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::tune {

// The values of a trial, internal, by name and sorted by it; absent: its condition does not hold. In one piece of
// memory, since a sampler reads those of ten thousand trials.
class Values {
 public:
  using Entry = std::pair<std::string, double>;

  Values() = default;
  Values(std::initializer_list<Entry> entries) {
    for (const auto& [name, value] : entries) (*this)[name] = value;
  }

  double& operator[](const std::string& name) {
    auto found = entries_.begin() + (lower(name) - entries_.cbegin());
    if (found == entries_.end() || found->first != name) found = entries_.insert(found, {name, 0});
    return found->second;
  }
  std::vector<Entry>::const_iterator find(std::string_view name) const {
    const auto found = lower(name);
    return found != end() && found->first == name ? found : end();
  }
  bool contains(std::string_view name) const { return find(name) != end(); }
  double at(std::string_view name) const {
    const auto found = find(name);
    if (found == end()) throw std::out_of_range(std::string(name));
    return found->second;
  }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Values&) const = default;

 private:
  std::vector<Entry>::const_iterator lower(std::string_view name) const {
    return std::lower_bound(entries_.begin(), entries_.end(), name,
                            [](const Entry& entry, std::string_view other) { return entry.first < other; });
  }

  std::vector<Entry> entries_;
};

}  // namespace lockstep::tune
