// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/kitti_label.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr size_t kNumbers = 14;  // behind the type; one more in result files

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t i = 0; i < line.size();) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) ++i;
    size_t end = i;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') ++end;
    if (end > i) words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

double number_of(std::string_view word, const std::string& where) {
  double value = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code == std::errc() && end == word.data() + word.size() && std::isfinite(value)) return value;
  throw Error(Blame::user, text(where, ": ", base::quote_json(word), " is no number"), "is this a KITTI file?");
}

// KITTI writes hundredths of a pixel: 614.12 - 573.1 is 41.02, not 41.01999999999998.
double extent(double from, double to) {
  return std::round((to - from) * 1e6) / 1e6;
}

Json numbers(const std::vector<double>& all, size_t begin, size_t count) {
  Json list = Json::array();
  for (size_t i = begin; i < begin + count; ++i) list.push_back(all[i]);
  return list;
}

}  // namespace

const std::vector<std::string>& kitti_types() {
  static const std::vector<std::string> types{"Car",     "Van",  "Truck", "Pedestrian", "Person_sitting",
                                              "Cyclist", "Tram", "Misc",  "DontCare"};
  return types;
}

std::vector<KittiLine> read_kitti_lines(std::string_view content, const std::string& source) {
  std::vector<KittiLine> lines;
  int64_t number = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    const auto words = words_of(content.substr(0, end));
    content.remove_prefix(std::min(end + 1, content.size()));
    ++number;
    if (words.empty()) continue;
    KittiLine& line = lines.emplace_back(KittiLine{text(source, ":", number), words[0], {}});
    for (size_t i = 1; i < words.size(); ++i) line.values.push_back(number_of(words[i], line.where));
    if (line.values.size() >= 7 && (line.values[5] < line.values[3] || line.values[6] < line.values[4]))
      throw Error(Blame::user, text(line.where, ": the box ends before it begins"), "x1, y1, x2, y2 are its corners");
  }
  return lines;
}

Json parse_kitti_labels(std::string_view content, const std::string& source) {
  Json objects = Json::array();
  for (const auto& [where, name, values] : read_kitti_lines(content, source)) {
    const auto type = std::find(kitti_types().begin(), kitti_types().end(), name);
    if (type == kitti_types().end())
      throw Error(Blame::user, text(where, ": unknown type ", base::quote_json(name)),
                  base::did_you_mean(name, kitti_types()));
    if (values.size() != kNumbers && values.size() != kNumbers + 1) {
      throw Error(Blame::user, text(where, ": ", values.size() + 1, " columns, 15 are expected"),
                  "is this a KITTI label?");
    }
    Json object = Json::object();
    object["label"] = type - kitti_types().begin();
    object["category"] = *type;
    object["bbox"] = Json::array({values[3], values[4], extent(values[3], values[5]), extent(values[4], values[6])});
    object["truncated"] = values[0];
    object["occluded"] = values[1];
    object["alpha"] = values[2];
    object["dimensions"] = numbers(values, 7, 3);  // height, width, length in metres
    object["location"] = numbers(values, 10, 3);   // x, y, z in the camera's coordinates
    object["rotation_y"] = values[13];
    objects.push_back(std::move(object));
  }
  return objects;
}

Json parse_kitti_calibration(std::string_view content, const std::string& source) {
  Json all = Json::object();
  int64_t line = 0;
  for (const auto& row : base::split(content, '\n')) {
    const std::string where = text(source, ":", ++line);
    const auto words = words_of(row);
    if (words.empty()) continue;
    const std::string_view name = words[0].substr(0, words[0].find(':'));
    if (name.size() == words[0].size() || name.empty())
      throw Error(Blame::user, text(where, ": 'NAME: numbers' is expected"));
    Json list = Json::array();
    for (size_t i = 1; i < words.size(); ++i) list.push_back(number_of(words[i], where));
    all[name] = std::move(list);
  }
  return all;
}

}  // namespace lockstep::sources
