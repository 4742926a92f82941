// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/runs.h"
#include "lockstep/task/draw_objects.h"
#include "lockstep/task/instances_encoder.h"
#include "lockstep/task/instances_rows.h"
#include "lockstep/task/instances_score.h"
#include "lockstep/task/instances_view.h"
#include "lockstep/task/kitti_score.h"

namespace lockstep::task {
namespace {

using base::fixed;
using base::Json;
using base::text;

constexpr size_t kMostInLine = 8;

// To the nearest 1 / parts, which is written with few digits.
double rounded(double value, double parts) {
  return std::round(value * parts) / parts;
}

std::vector<std::string> names_for(std::vector<std::string> classes, int64_t count) {
  for (auto i = std::ssize(classes); i < count; ++i) classes.push_back(std::to_string(i));
  return classes;
}

class Instances final : public Task {
 public:
  Instances(const spec::Job& job, std::vector<std::string> classes) : job_(job), has_masks_(job.instances.masks) {
    const spec::Instances& how = job.instances;
    if (!how.context.empty() && !classes.empty())
      context_ = std::make_shared<Context>(base::read_file(how.context), how.context, classes, how.context_strength);
    classes_ = names_for(std::move(classes), job.model.classes);
  }

  std::vector<Field> fields() const override { return instances_fields(job_); }
  int64_t num_canvases() const override { return std::ssize(job_.instances.canvases) + 1; }
  std::vector<Field> fields_on(int64_t canvas) const override { return instances_fields(job_, canvas); }
  int64_t canvas_of(int64_t width, int64_t height) const override { return fitting_canvas(width, height, job_); }
  std::vector<std::string> members() const override { return {"json"}; }
  std::unique_ptr<Encoder> encoder() const override { return make_instances_encoder(job_, classes_); }
  Classes classes() const override { return Classes::of_objects; }
  int64_t object_slots() const override { return job_.instances.slots; }
  std::vector<std::string> told_classes(const std::vector<std::string>& classes) const override {
    std::vector<std::string> told = classes;
    std::erase_if(told, [](const std::string& name) { return kitti_type(name) == KittiType::dont_care; });
    return told;
  }
  std::vector<std::string> known_columns() const override {
    return context_ ? context_->columns() : std::vector<std::string>();
  }
  int64_t num_outputs() const override { return std::ssize(classes_); }
  std::unique_ptr<Score> score(int64_t worst) const override {
    return make_instances_score(classes_, has_masks_, worst, context_);
  }
  Json report_words() const override {
    const std::string kind = has_masks_ ? "mask" : "box";
    return base::parse_json(text(R"({"title": "Average precision of )", has_masks_ ? "masks" : "boxes",
                                 R"(", "share": true, "higher_is_better": true, "training": "", "validation": ")", kind,
                                 R"(_ap", "also": {"at IoU 0.5": ")", kind, R"(_ap50"}})"),
                            "report words");
  }
  NetworkWords network_words() const override {
    return {.gives = "boxes and masks of objects", .activation = "docs/detection.md"};
  }

  // {"width", "height", "objects": [{"class", "label", "score", "box": [x, y, width, height], "segmentation"}]}, in
  // pixels of the image as it is seen.
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    const ImageExtent image = extent_of(rows, i);
    Json objects = Json::array();
    for (const Detection& one : detections_of(rows, i, image, num_outputs(), context_.get())) {
      Json object = Json::object();
      object["class"] = classes_[static_cast<size_t>(one.label)];
      object["label"] = one.label;
      object["score"] = rounded(one.score, 1e6);
      const auto pixels = [](float value) { return Json(rounded(value, 1e3)); };
      object["box"] = Json::array(
          {pixels(one.box[0]), pixels(one.box[1]), pixels(one.box[2] - one.box[0]), pixels(one.box[3] - one.box[1])});
      if (!one.mask.empty()) {
        object["segmentation"]["size"] = Json::array({image.height, image.width});
        object["segmentation"]["counts"] = image::compress_runs(one.runs(image.width, image.height));
      }
      objects.push_back(std::move(object));
    }
    Json record = Json::object();
    record["width"] = image.width;
    record["height"] = image.height;
    record["objects"] = std::move(objects);
    return record;
  }

  // "3 objects: cat 0.98, dog 0.77, cat 0.51; 4 below 0.5"
  std::string line(const Json& record) const override {
    std::vector<std::string> words;
    size_t likely = 0;
    const auto& objects = record.at("objects").items();
    for (const Json& object : objects) {
      if (!is_likely(object)) continue;
      if (++likely > kMostInLine) continue;
      words.push_back(text(object.at("class").as_string(), " ", fixed(object.at("score").as_double(), 2)));
    }
    if (likely > kMostInLine) words.emplace_back("...");
    const size_t rest = objects.size() - likely;
    return text(likely == 0 ? "no" : std::to_string(likely), likely == 1 ? " object" : " objects",
                words.empty() ? "" : ": ", base::join(words, ", "),
                rest > 0 ? text("; ", rest, " below ", fixed(kLeastDrawn, 1)) : "");
  }

  std::vector<std::string> columns(int64_t /*top*/) const override { return {"objects", "classes", "scores", "boxes"}; }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    std::vector<std::string> names, scores, boxes;
    for (const Json& object : record.at("objects").items()) {
      names.push_back(object.at("class").as_string());
      scores.push_back(fixed(object.at("score").as_double(), 4));
      std::vector<std::string> corners;
      for (const Json& at : object.at("box").items()) corners.push_back(fixed(at.as_double(), 1));
      boxes.push_back(base::join(corners, " "));
    }
    return {std::to_string(names.size()), base::join(names, "|"), base::join(scores, "|"), base::join(boxes, "|")};
  }

  bool draw(const Json& record, image::Image& on) const override { return draw_objects(record, on); }

 private:
  static bool is_likely(const Json& object) { return object.at("score").as_double() >= kLeastDrawn; }

  spec::Job job_;
  bool has_masks_;
  std::vector<std::string> classes_;
  std::shared_ptr<const Context> context_ = nullptr;
};

}  // namespace

std::unique_ptr<Task> make_instances(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<Instances>(job, std::move(classes));
}

}  // namespace lockstep::task
