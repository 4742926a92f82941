// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/statistics.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/coco_list.h"
#include "lockstep/sources/npy.h"

namespace lockstep::sources {
namespace {

void widen(int64_t& low, int64_t& high, bool is_first, int64_t from, int64_t to) {
  low = is_first ? from : std::min(low, from);
  high = std::max(high, to);
}

template <class Range>
void read_into(const base::Json& list, Range& range) {
  size_t i = 0;
  for (const auto& item : list.items()) {
    if (i < range.size()) range[i++] = item.as_int();
  }
}

double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

base::Json rounded_list(const std::array<double, 3>& values) {
  base::Json all = base::Json::array();
  for (const double value : values) all.push_back(rounded(value));
  return all;
}

// For people. A foreign array may be of any kind: what cannot be said of it is left out.
std::string in_words(const SourceMember& member) {
  if (member.extension != "npy") return base::text(".", member.extension);
  try {
    const auto bytes = std::as_bytes(std::span(member.bytes.data(), member.bytes.size()));
    const NpyHeader header = read_npy_header(bytes, "array");
    std::vector<std::string> sizes;
    for (const int64_t size : header.shape) sizes.push_back(std::to_string(size));
    return base::text("array ", base::join(sizes, "x"), " of ", header.type);
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) throw;
    return ".npy";
  }
}

void add_counts(std::vector<int64_t>& counts, const std::vector<int64_t>& others) {
  counts.resize(std::max(counts.size(), others.size()));
  for (size_t i = 0; i < others.size(); ++i) counts[i] += others[i];
}

}  // namespace

ObjectCounts count_objects(const FinishedSample& sample, size_t num_classes) {
  const auto member = std::find_if(sample.members.begin(), sample.members.end(),
                                   [](const auto& one) { return one.extension == "json"; });
  if (member == sample.members.end() || member->bytes.find("\"objects\"") == std::string::npos) return {};
  base::Json all;
  try {
    all = base::parse_json(member->bytes, "json", {.max_bytes = member->bytes.size()});
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) throw;
    return {};
  }
  const base::Json* objects = all.is_object() ? all.find("objects") : nullptr;
  if (!objects || !objects->is_array()) return {};
  ObjectCounts counts;
  if (const base::Json* columns = all.find("columns")) counts.columns = *columns;
  for (const auto& object : objects->items()) {
    const base::Json* label = object.is_object() ? object.find("label") : nullptr;
    if (!label || !label->is_integer()) continue;
    const int64_t number = label->as_int();
    if (number < 0 || number >= static_cast<int64_t>(num_classes)) continue;
    counts.per_class.resize(std::max(counts.per_class.size(), static_cast<size_t>(number) + 1));
    ++counts.per_class[static_cast<size_t>(number)];
    const base::Json* crowd = object.find("iscrowd");
    counts.single += !(crowd && crowd->is_number() && crowd->as_double() != 0);
    if (const base::Json* why = object.find(kOutlineLeftOut); why && why->is_string()) {
      if (counts.bad_outlines++ > 0) continue;
      const base::Json* name = all.find("file_name");
      counts.first_bad_outline =
          base::text(name && name->is_string() ? name->as_string() + ": " : "", why->as_string());
    }
  }
  return counts;
}

void Statistics::add(const FinishedSample& sample, int32_t label, const ObjectCounts& objects) {
  Statistics one;
  one.num_samples = 1;
  one.objects_per_class = objects.per_class;
  one.most_objects = objects.single;
  one.pairs.add(objects.per_class);
  one.columns.add(objects.columns, objects.per_class);
  one.words.add(sample);
  one.bad_outlines = objects.bad_outlines;
  one.first_bad_outline = objects.first_bad_outline;
  if (label >= 0) {
    one.per_class.resize(static_cast<size_t>(label) + 1);
    one.per_class.back() = 1;
  }
  if (sample.width > 0) {
    one.num_images = 1;
    one.min_width = one.max_width = one.sum_width = sample.width;
    one.min_height = one.max_height = one.sum_height = sample.height;
  } else if (without_image.empty() && !sample.members.empty()) {
    one.without_image = in_words(sample.members.front());
  }
  one.bytes_in = sample.bytes_in;
  for (const auto& member : sample.members) one.bytes_out += static_cast<int64_t>(member.bytes.size());
  one.num_shrunk = sample.was_shrunk;
  one.num_turned = sample.was_turned;
  one.pixels = sample.pixels;
  add(one);
}

void Statistics::add(const Statistics& other) {
  add_counts(per_class, other.per_class);
  add_counts(objects_per_class, other.objects_per_class);
  most_objects = std::max(most_objects, other.most_objects);
  pairs.add(other.pairs);
  columns.add(other.columns);
  words.add(other.words);
  if (bad_outlines == 0) first_bad_outline = other.first_bad_outline;
  bad_outlines += other.bad_outlines;
  if (other.num_images > 0) {
    widen(min_width, max_width, num_images == 0, other.min_width, other.max_width);
    widen(min_height, max_height, num_images == 0, other.min_height, other.max_height);
  }
  if (without_image.empty()) without_image = other.without_image;  // shards come in order
  num_samples += other.num_samples;
  num_images += other.num_images;
  sum_width += other.sum_width;
  sum_height += other.sum_height;
  bytes_in += other.bytes_in;
  bytes_out += other.bytes_out;
  num_shrunk += other.num_shrunk;
  num_turned += other.num_turned;
  pixels.add(other.pixels);
}

base::Json Statistics::to_json() const {
  base::Json all = base::Json::object();
  all["samples"] = num_samples;
  all["per_class"] = base::Json::array_of(per_class);
  all["objects_per_class"] = base::Json::array_of(objects_per_class);
  all["most_objects"] = most_objects;
  all["pairs"] = pairs.to_json();
  if (!columns.empty()) all["columns"] = columns.to_json();
  if (!words.empty()) all["words"] = words.to_json();
  all["bad_outlines"] = bad_outlines;
  if (bad_outlines > 0) all["first_bad_outline"] = first_bad_outline;
  all["images"] = num_images;
  if (!without_image.empty()) all["without_image"] = without_image;
  all["width"] = base::Json::array_of(std::array{min_width, max_width, sum_width});
  all["height"] = base::Json::array_of(std::array{min_height, max_height, sum_height});
  all["bytes_in"] = bytes_in;
  all["bytes_out"] = bytes_out;
  all["shrunk"] = num_shrunk;
  all["turned"] = num_turned;
  all["pixels"] = pixels.num_pixels;
  all["pixel_sum"] = base::Json::array_of(pixels.sum);
  all["pixel_square_sum"] = base::Json::array_of(pixels.square);
  return all;
}

Statistics Statistics::from_json(const base::Json& value) {
  Statistics all;
  all.num_samples = value.at("samples").as_int();
  for (const auto& item : value.at("per_class").items()) all.per_class.push_back(item.as_int());
  if (const base::Json* objects = value.find("objects_per_class")) {  // notes of before have none
    for (const auto& item : objects->items()) all.objects_per_class.push_back(item.as_int());
  }
  all.most_objects = value.int_or("most_objects", 0);
  if (const base::Json* pairs = value.find("pairs")) all.pairs = ClassPairs::from_json(*pairs);
  if (const base::Json* columns = value.find("columns")) all.columns = ColumnCounts::from_json(*columns);
  if (const base::Json* words = value.find("words")) all.words = WordCounts::from_json(*words);
  all.bad_outlines = value.int_or("bad_outlines", 0);
  all.first_bad_outline = value.string_or("first_bad_outline", "");
  all.num_images = value.at("images").as_int();
  all.without_image = value.string_or("without_image", "");
  std::array<int64_t, 3> width = {}, height = {};
  read_into(value.at("width"), width);
  read_into(value.at("height"), height);
  all.min_width = width[0], all.max_width = width[1], all.sum_width = width[2];
  all.min_height = height[0], all.max_height = height[1], all.sum_height = height[2];
  all.bytes_in = value.at("bytes_in").as_int();
  all.bytes_out = value.at("bytes_out").as_int();
  all.num_shrunk = value.at("shrunk").as_int();
  all.num_turned = value.at("turned").as_int();
  all.pixels.num_pixels = value.at("pixels").as_int();
  read_into(value.at("pixel_sum"), all.pixels.sum);
  read_into(value.at("pixel_square_sum"), all.pixels.square);
  return all;
}

base::Json Statistics::for_people() const {
  base::Json all = base::Json::object();
  const double count = static_cast<double>(std::max<int64_t>(num_images, 1));
  all["samples"] = num_samples;
  all["per_class"] = base::Json::array_of(per_class);
  if (!objects_per_class.empty()) {
    all["objects_per_class"] = base::Json::array_of(objects_per_class);
    all["most_objects"] = most_objects;
  }
  if (bad_outlines > 0) {
    all["bad_outlines"] = bad_outlines;
    all["first_bad_outline"] = first_bad_outline;
  }
  all["bytes_in"] = bytes_in;
  all["bytes_out"] = bytes_out;
  all["shrunk"] = num_shrunk;
  all["turned_upright"] = num_turned;
  if (num_images < num_samples) {
    all["without_image"] = num_samples - num_images;
    all["first_without_image"] = without_image;
  }
  if (num_images == 0) return all;
  all["width_min"] = min_width;
  all["width_mean"] = rounded(static_cast<double>(sum_width) / count);
  all["width_max"] = max_width;
  all["height_min"] = min_height;
  all["height_mean"] = rounded(static_cast<double>(sum_height) / count);
  all["height_max"] = max_height;
  all["mean"] = rounded_list(pixels.mean());
  all["std"] = rounded_list(pixels.deviation());
  return all;
}

base::Json ShardReport::to_json() const {
  base::Json all = base::Json::object();
  all["name"] = summary.name;
  all["samples"] = summary.num_samples;
  all["tar_bytes"] = summary.tar_bytes;
  all["tar_crc32c"] = int64_t{summary.tar_crc32c};
  all["statistics"] = statistics.to_json();
  base::Json list = base::Json::array();
  for (const auto& one : refused) list.push_back(base::Json::array({one.name, one.reason}));
  all["refused"] = std::move(list);
  return all;
}

ShardReport ShardReport::from_json(const base::Json& value) {
  ShardReport all;
  all.summary = {value.at("name").as_string(), value.at("samples").as_int(), value.at("tar_bytes").as_int(),
                 static_cast<uint32_t>(value.at("tar_crc32c").as_int())};
  all.statistics = Statistics::from_json(value.at("statistics"));
  for (const auto& one : value.at("refused").items()) {
    all.refused.push_back({one.items().at(0).as_string(), one.items().at(1).as_string()});
  }
  return all;
}

}  // namespace lockstep::sources
