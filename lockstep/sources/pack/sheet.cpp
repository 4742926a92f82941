// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/sheet.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/contact_sheet.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/sources/pack/plain_file.h"

namespace lockstep::sources {
namespace {

constexpr size_t kColumns = 10, kRows = 40, kRowsWithoutClass = 8, kLetters = 22;
constexpr int64_t kCell = 96;

void draw_frame(image::Image& image, double x, double y, double width, double height) {
  const auto clamped = [](double value, int64_t size) {
    return std::clamp<int64_t>(std::isfinite(value) ? static_cast<int64_t>(std::clamp(value, -1e9, 1e9)) : 0, 0,
                               size - 1);
  };
  const int64_t left = clamped(x, image.width), right = clamped(x + width, image.width);
  const int64_t top = clamped(y, image.height), bottom = clamped(y + height, image.height);
  const int64_t pen = std::max<int64_t>(std::max(image.width, image.height) / 40, 1);
  for (int64_t row = top; row <= bottom; ++row) {
    for (int64_t column = left; column <= right; ++column) {
      if (row - top >= pen && bottom - row >= pen && column - left >= pen && right - column >= pen) continue;
      uint8_t* pixel = image.row(row) + 3 * column;
      pixel[0] = 255, pixel[1] = 40, pixel[2] = 40;
    }
  }
}

// What the .json member of a sample says; null where it is no JSON of ours (a foreign one may hold NaN, or anything).
base::Json told_by(std::string_view json) {
  try {
    return base::parse_json(json, "json", {.max_bytes = json.size()});
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) throw;
    return nullptr;
  }
}

// The boxes of a sample's .json member, in pixels of an image of the size that it names. What does not look like boxes
// has no frames.
void draw_boxes(image::Image& image, std::string_view json) {
  const base::Json all = told_by(json);
  const base::Json* objects = all.is_object() ? all.find("objects") : nullptr;
  if (!objects || !objects->is_array()) return;
  const auto side = [&](const char* key) {
    const base::Json* value = all.find(key);
    return value && value->is_number() ? std::max(value->as_double(), 1.0) : 1.0;
  };
  const double scale_x = static_cast<double>(image.width) / side("width");
  const double scale_y = static_cast<double>(image.height) / side("height");
  for (const auto& object : objects->items()) {
    const base::Json* box = object.is_object() ? object.find("bbox") : nullptr;
    if (!box || !box->is_array() || box->size() != 4) continue;
    const auto is_number = [](const base::Json& value) { return value.is_number(); };
    if (!std::all_of(box->items().begin(), box->items().end(), is_number)) continue;
    const auto at = [&](size_t i) { return box->items()[i].as_double(); };
    draw_frame(image, at(0) * scale_x, at(1) * scale_y, at(2) * scale_x, at(3) * scale_y);
  }
}

}  // namespace

std::string draw_sheet(const base::Path& shard_folder) {
  const shards::ShardSet set(shard_folder);
  std::map<int32_t, std::vector<shards::ShardSet::Position>> chosen;  // by label
  for (int64_t id = 0; id < set.size(); ++id) {
    const auto position = set.position_of(id);
    const shards::IndexedSample sample = set.index(position.shard).sample(position.sample);
    if (!sample.image || sample.label >= static_cast<int32_t>(kRows)) continue;
    auto& row = chosen[sample.label];
    if (row.size() >= (sample.label < 0 ? kColumns * kRowsWithoutClass : kColumns)) continue;
    row.push_back(position);
  }
  std::vector<image::SheetRow> rows;
  std::map<int64_t, PlainFile> tars;
  for (const auto& [label, positions] : chosen) {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (i % kColumns == 0) {
        rows.push_back({label < 0 ? "" : set.classes().at(static_cast<size_t>(label)).substr(0, kLetters), {}});
      }
      const auto [shard, sample] = positions[i];
      const shards::ShardIndex& index = set.index(shard);
      const PlainFile& tar = tars.try_emplace(shard, set.tar_path(shard)).first->second;
      const shards::IndexedMember stored = index.member(sample, index.sample(sample).image->member);
      image::Image image = image::decode_image(tar.read(stored.offset, stored.size));
      if (const auto json = index.find(sample, "json")) {
        const std::vector<std::byte> told = tar.read(json->offset, json->size);
        draw_boxes(image, {reinterpret_cast<const char*>(told.data()), told.size()});
      }
      rows.back().pictures.push_back(image::fit_to_cell(image, kCell));  // hundreds are kept: not in their full size
    }
  }
  return rows.empty() ? "" : image::encode_jpeg(image::contact_sheet(rows, kCell), 92);
}

}  // namespace lockstep::sources
