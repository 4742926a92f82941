// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/class_pairs.h"

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
std::string csv_name(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void ClassPairs::add(const std::vector<int64_t>& objects_per_class) {
  if (objects_per_class.size() > kMostClasses) return;
  std::vector<int64_t> seen;
  for (size_t label = 0; label < objects_per_class.size(); ++label) {
    if (objects_per_class[label] > 0) seen.push_back(static_cast<int64_t>(label));
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    for (size_t k = i; k < seen.size(); ++k) ++images_[{seen[i], seen[k]}];
  }
}

void ClassPairs::add(const ClassPairs& other) {
  for (const auto& [pair, count] : other.images_) images_[pair] += count;
}

base::Json ClassPairs::to_json() const {
  base::Json all = base::Json::array();
  for (const auto& [pair, count] : images_) all.push_back(base::Json::array({pair.first, pair.second, count}));
  return all;
}

ClassPairs ClassPairs::from_json(const base::Json& value) {
  ClassPairs all;
  for (const auto& row : value.items()) {
    const auto& cells = row.items();
    all.images_[{cells.at(0).as_int(), cells.at(1).as_int()}] = cells.at(2).as_int();
  }
  return all;
}

std::string ClassPairs::csv(const std::vector<std::string>& classes, int64_t num_images) const {
  const auto count = [&](int64_t a, int64_t b) {
    const auto found = images_.find({a, b});
    return found == images_.end() ? 0.0 : static_cast<double>(found->second);
  };
  std::string lines = "class,beside,weight\n";
  for (int64_t a = 0; a < std::ssize(classes); ++a) {
    for (int64_t b = a + 1; b < std::ssize(classes); ++b) {
      if (count(a, a) == 0 || count(b, b) == 0) continue;
      const double expected = count(a, a) * count(b, b) / static_cast<double>(num_images);
      lines += base::text(csv_name(classes[static_cast<size_t>(a)]), ",", csv_name(classes[static_cast<size_t>(b)]),
                          ",", base::fixed((count(a, b) + 1) / (expected + 1), 4), "\n");
    }
  }
  return lines;
}

}  // namespace lockstep::sources
