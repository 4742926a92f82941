// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/preprocessing.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::weights {

using base::Json;
using base::text;

namespace {

Json to_json(const Preprocessing& preprocessing) {
  Json all = Json::object();
  all["image_size"] = preprocessing.image_size;
  all["mean"] = Json::array_of(preprocessing.mean);
  all["std"] = Json::array_of(preprocessing.std);
  all["center_crop"] = preprocessing.center_crop;
  return all;
}

std::vector<double> three_numbers(const Json& list) {
  std::vector<double> numbers;
  for (const Json& item : list.items()) numbers.push_back(item.as_double());
  if (numbers.size() == 3) return numbers;
  throw base::Error(base::Blame::user, text(list.source(), ": 3 numbers are expected, these are ", numbers.size()),
                    "fetch or convert the weights again: lockstep get weights");
}

// Published figures are rounded: 0.5 and 127/255 are the same normalisation to a network.
bool is_near(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return std::abs(a.as_double() - b.as_double()) < 0.005;
  if (!a.is_array() || !b.is_array() || a.size() != b.size()) return a == b;
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), is_near);
}

}  // namespace

Preprocessing preprocessing_of(const spec::Data& data) {
  return {spec::to_json(data.image_size), data.mean, data.std, data.center_crop};
}

void add_to(TensorMetadata& metadata, const Preprocessing& preprocessing) {
  const Json all = to_json(preprocessing);
  for (const auto& member : all.members()) metadata[member.key] = member.value.dump(-1);
}

std::optional<Preprocessing> read_preprocessing(const base::Path& path) {
  base::Path file = path;
  if (std::filesystem::is_directory(path)) file = path / "weights.safetensors";
  if (file.extension() != ".safetensors" || !std::filesystem::is_regular_file(file)) return std::nullopt;
  const SafetensorsFile opened(file);
  const TensorMetadata& metadata = opened.metadata();
  Preprocessing found;
  const auto value = [&](const std::string& key) {
    return base::parse_json(metadata.at(key), text(file.string(), ", \"", key, "\" of its metadata"));
  };
  for (const char* key : {"image_size", "mean", "std", "center_crop"}) {
    if (!metadata.contains(key)) return std::nullopt;
  }
  found.image_size = value("image_size");
  if (!found.image_size.is_integer() && !(found.image_size.is_array() && found.image_size.size() == 2)) {
    throw base::Error(base::Blame::user, text(file.string(), ": \"image_size\" of its metadata is no size"),
                      "fetch or convert the weights again: lockstep get weights");
  }
  found.mean = three_numbers(value("mean"));
  found.std = three_numbers(value("std"));
  found.center_crop = value("center_crop").as_double();
  return found;
}

Preprocessing whole_image(Preprocessing preprocessing) {
  const double crop = preprocessing.center_crop;
  spec::ImageSize size = spec::image_size_of(preprocessing.image_size);
  size.height = std::llround(static_cast<double>(size.height) / crop);
  size.width = std::llround(static_cast<double>(size.width) / crop);
  preprocessing.image_size = spec::to_json(size);
  preprocessing.center_crop = 1;
  return preprocessing;
}

std::vector<std::string> add_to(Json& job, const Preprocessing& preprocessing, const std::string& source) {
  std::vector<std::string> warnings;
  Json& data = job["data"];
  if (!data.is_null() && !data.is_object()) return warnings;  // the parser says so
  const Json all = to_json(preprocessing);
  for (const auto& member : all.members()) {
    const Json* given = data.is_null() ? nullptr : data.find(member.key);
    if (!given) {
      data[member.key] = member.value;
    } else if ((member.key == "mean" || member.key == "std") && !is_near(*given, member.value)) {
      warnings.push_back(text("warning: data.", member.key, " is ", given->dump(-1), ", but ", source,
                              " was trained with ", member.value.dump(-1), ": leave data.", member.key, " out"));
    }
  }
  return warnings;
}

}  // namespace lockstep::weights
