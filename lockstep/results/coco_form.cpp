// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/coco_form.h"

#include <memory>
#include <optional>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/results/record.h"
#include "lockstep/sources/json_slices.h"

namespace lockstep::results {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// Rows of a JSON array, one a line.
class ArrayWriter {
 public:
  explicit ArrayWriter(DraftedFile& file) : file_(file) { file_.write("["); }
  void add(const Json& row) {
    file_.write(is_first_ ? "\n" : ",\n");
    file_.write(row.dump(-1));
    is_first_ = false;
  }
  void end() { file_.write("\n]"); }

 private:
  DraftedFile& file_;
  bool is_first_ = true;
};

// Which number an image and a class has.
class Numbers {
 public:
  virtual ~Numbers() = default;
  virtual std::optional<Json> image(const Json& record) = 0;
  virtual std::optional<Json> category(const std::string& name) = 0;
  virtual base::Path finish() = 0;  // where they stand, unless somebody else gave them
};

class ListedNumbers final : public Numbers {
 public:
  explicit ListedNumbers(const base::Path& list) {
    const base::MappedFile file(list);
    const std::string_view content(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    sources::for_each_element(content, list.string(), [&](std::string_view key, sources::JsonSlice slice) {
      if (key != "images" && key != "categories") return;
      sources::read_slice(content, list.string(), slice, [&](const Json& row) {
        auto& numbers = key == "images" ? images_ : categories_;
        numbers.emplace(row.at(key == "images" ? "file_name" : "name").as_string(), row.at("id"));
        return 0;
      });
    });
    if (images_.empty() || categories_.empty()) {
      throw Error(Blame::user,
                  text("--images ", list.string(), ": it lists no ", images_.empty() ? "images" : "categories"),
                  "a COCO list has \"images\" and \"categories\"");
    }
  }
  std::optional<Json> image(const Json& record) override {
    const std::string& path = record.at("path").as_string();
    for (size_t from = 0; from != std::string::npos;) {
      if (const auto found = images_.find(path.substr(from)); found != images_.end()) return found->second;
      const size_t slash = path.find('/', from);
      from = slash == std::string::npos ? slash : slash + 1;
    }
    return std::nullopt;
  }
  std::optional<Json> category(const std::string& name) override {
    const auto found = categories_.find(name);
    return found == categories_.end() ? std::nullopt : std::optional(found->second);
  }
  base::Path finish() override { return {}; }

 private:
  std::unordered_map<std::string, Json> images_, categories_;
};

class RunningNumbers final : public Numbers {
 public:
  RunningNumbers(const base::Path& table, const std::vector<std::string>& classes)
      : path_(table), file_(table), images_((file_.write("{\"images\": "), file_)) {
    for (const auto& name : classes) category(name);
  }
  std::optional<Json> image(const Json& record) override {
    Json row = Json::object();
    row["id"] = ++count_;
    row["file_name"] = record.at("path");
    for (const char* key : {"width", "height"}) {
      if (const Json* value = record.find(key)) row[key] = *value;
    }
    images_.add(row);
    return Json(count_);
  }
  std::optional<Json> category(const std::string& name) override {
    const auto [found, is_new] = categories_.emplace(name, static_cast<int64_t>(categories_.size()) + 1);
    if (is_new) names_.push_back(name);
    return Json(found->second);
  }
  base::Path finish() override {
    images_.end();
    file_.write(", \"categories\": ");
    ArrayWriter categories(file_);
    for (size_t i = 0; i < names_.size(); ++i) {
      Json row = Json::object();
      row["id"] = static_cast<int64_t>(i) + 1;
      row["name"] = names_[i];
      categories.add(row);
    }
    categories.end();
    file_.write("}\n");
    file_.commit();
    return path_;
  }

 private:
  base::Path path_;
  DraftedFile file_;
  ArrayWriter images_;
  int64_t count_ = 0;
  std::unordered_map<std::string, int64_t> categories_;
  std::vector<std::string> names_;
};

std::unique_ptr<Numbers> numbers_for(const CocoOptions& options) {
  if (!options.images.empty()) return std::make_unique<ListedNumbers>(options.images);
  base::Path table = options.to;
  return std::make_unique<RunningNumbers>(table.replace_extension(".images.json"), options.classes);
}

Json coco_row(const Json& image, const Json& category, const Json& object) {
  Json row = Json::object();
  row["image_id"] = image;
  row["category_id"] = category;
  row["bbox"] = object.at("box");
  row["score"] = object.at("score");
  if (const Json* mask = object.find("segmentation"); mask && !mask->is_null()) row["segmentation"] = *mask;
  return row;
}

void add_record(const Json& record, Numbers& numbers, ArrayWriter& rows, CocoSummary& summary) {
  const Json* objects = record.find("objects");
  if (!objects) {
    throw Error(Blame::user, text("--coco: the record of ", record.at("path").as_string(), " has no objects"),
                "COCO's results are of detection; --annotations takes any task");
  }
  const auto image = numbers.image(record);
  if (!image) {
    if (summary.unlisted_images++ == 0) summary.unlisted_image = record.at("path").as_string();
    return;
  }
  ++summary.images;
  for (const auto& object : objects->items()) {
    const std::string& name = object.at("class").as_string();
    const auto category = numbers.category(name);
    if (!category) {
      if (summary.unlisted_objects++ == 0) summary.unlisted_class = name;
      continue;
    }
    rows.add(coco_row(*image, *category, object));
    ++summary.objects;
  }
}

}  // namespace

CocoSummary write_coco(const base::Path& results, const CocoOptions& options) {
  CocoSummary summary;
  const auto numbers = numbers_for(options);
  DraftedFile file(options.to);
  ArrayWriter rows(file);
  for_each_record(results, [&](const Json& record) {
    if (record.contains("error")) {
      ++summary.failed;
    } else {
      add_record(record, *numbers, rows, summary);
    }
  });
  rows.end();
  file.write("\n");
  summary.table = numbers->finish();
  file.commit();
  return summary;
}

}  // namespace lockstep::results
