// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/column_counts.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/pack/class_pairs.h"

namespace lockstep::sources {
namespace {

constexpr size_t kMostKinds = 20;  // of whole numbers that stand for themselves

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string hundred_of(int64_t value) {
  const int64_t begin = (value >= 0 ? value : value - 99) / 100 * 100;
  return base::text(begin, "..", begin + 99);
}

}  // namespace

void ColumnCounts::add(const base::Json& columns, const std::vector<int64_t>& objects_per_class) {
  if (!columns.is_object()) return;
  for (const auto& member : columns.members()) {
    const base::Json& value = member.value;
    if (!value.is_number() && !value.is_string()) continue;
    const Key key{member.key, value.is_string() ? value.as_string() : value.dump(-1)};
    if (images_.size() >= kMostValues && !images_.contains(key)) continue;
    auto& counts = images_[key];
    ++counts[kAll];
    for (size_t label = 0; label < objects_per_class.size(); ++label) {
      if (objects_per_class[label] > 0) ++counts[static_cast<int64_t>(label)];
    }
  }
}

void ColumnCounts::add(const ColumnCounts& other) {
  for (const auto& [key, counts] : other.images_) {
    for (const auto& [label, count] : counts) images_[key][label] += count;
  }
}

base::Json ColumnCounts::to_json() const {
  base::Json all = base::Json::array();
  for (const auto& [key, counts] : images_) {
    for (const auto& [label, count] : counts)
      all.push_back(
          base::Json::array({base::Json(key.first), base::Json(key.second), base::Json(label), base::Json(count)}));
  }
  return all;
}

ColumnCounts ColumnCounts::from_json(const base::Json& value) {
  ColumnCounts all;
  for (const auto& row : value.items()) {
    const auto& cells = row.items();
    all.images_[{cells.at(0).as_string(), cells.at(1).as_string()}][cells.at(2).as_int()] = cells.at(3).as_int();
  }
  return all;
}

std::string ColumnCounts::csv(const std::vector<std::string>& classes) const {
  std::map<std::string, std::vector<std::string>> values;  // by column
  for (const auto& [key, counts] : images_) values[key.first].push_back(key.second);
  std::map<Key, std::map<int64_t, int64_t>> counted;
  std::map<std::string, std::map<int64_t, int64_t>> with_class;  // images of a column's any value, by class
  for (const auto& [key, counts] : images_) {
    const auto& [column, value] = key;
    const auto& all = values[column];
    const bool by_hundred = all.size() > kMostKinds && std::all_of(all.begin(), all.end(), [](const std::string& one) {
                              return whole_number(one).has_value();
                            });
    const Key kind{column, by_hundred ? hundred_of(*whole_number(value)) : value};
    for (const auto& [label, count] : counts) {
      counted[kind][label] += count;
      with_class[column][label] += count;
    }
  }
  std::string lines = "class,column,weight\n";
  for (auto& [kind, counts] : counted) {
    for (int64_t label = 0; label < std::ssize(classes); ++label) {
      const auto of_class = static_cast<double>(with_class[kind.first][label]);
      if (of_class == 0) continue;
      const double expected =
          of_class * static_cast<double>(counts[kAll]) / static_cast<double>(with_class[kind.first][kAll]);
      const double weight = (static_cast<double>(counts[label]) + 1) / (expected + 1);
      lines += base::text(csv_name(classes[static_cast<size_t>(label)]), ",",
                          csv_name(base::text(kind.first, "=", kind.second)), ",", base::fixed(weight, 4), "\n");
    }
  }
  return lines;
}

}  // namespace lockstep::sources
