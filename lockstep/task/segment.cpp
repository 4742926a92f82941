// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/segment.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/draw.h"
#include "lockstep/image/mask.h"
#include "lockstep/task/segment_encoder.h"
#include "lockstep/task/segment_score.h"

namespace lockstep::task {
namespace {

using base::Json;
using base::text;

constexpr double kLabelShare = 0.5;   // of a class's colour on its pixels
constexpr double kLeastNamed = 0.01;  // of an image, to be named on it
constexpr const char* kBackground = "background";

class Segment final : public Task {
 public:
  Segment(const spec::Job& job, std::vector<std::string> classes)
      : job_(job), names_(segment_names(job.segment, classes)), classes_(std::move(classes)) {
    if (names_.empty() && job.model.classes > 0) {
      for (int64_t i = 0; i < job.model.classes; ++i) names_.push_back(std::to_string(i));
    }
    if (names_.size() > kNoClass) {
      throw base::Error(base::Blame::user,
                        text("task segment knows ", int{kNoClass}, " classes, the data have ", names_.size()),
                        "name those that are learnt in segment.classes");
    }
  }

  std::vector<Field> fields() const override { return segment_fields(job_); }
  std::vector<std::string> members() const override {
    if (job_.segment.pixels == spec::LabelPixels::objects) return {"seg.png", "json"};
    return {"seg.png"};
  }
  std::unique_ptr<Encoder> encoder() const override { return make_segment_encoder(job_, classes_, num_outputs()); }
  Classes classes() const override { return job_.segment.classes.empty() ? Classes::of_objects : Classes::none; }
  int64_t num_outputs() const override { return std::ssize(names_); }
  std::unique_ptr<Score> score(int64_t worst) const override {
    const Segment self = *this;
    return make_segment_score(names_, worst, [self](const Rows& rows, int64_t i) { return self.record(rows, i, 0); });
  }
  Json report_words() const override {
    return base::parse_json(R"({"title": "Mean IoU", "share": true, "higher_is_better": true,
                                "training": "pixel_accuracy", "validation": "miou",
                                "also": {"pixel accuracy": "pixel_accuracy"}})",
                            "report words");
  }
  NetworkWords network_words() const override {
    return {.gives = "the class of every pixel of an image: softmax over the classes of the map",
            .activation = "softmax"};
  }

  // {"width", "height", "regions": [{"class", "label", "share", "confidence", "segmentation"}]}, in pixels of the image
  // as it is seen; the largest region first.
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    const Json size = base::parse_json(rows.annotations[static_cast<size_t>(i)], "the image's annotation");
    const int64_t width = size.at("width").as_int(), height = size.at("height").as_int();
    const std::vector<uint8_t> answers = pixel_answers(rows, i, num_outputs());
    const std::span<const float> logs = rows.output("log_probabilities").row(i);
    Json regions = Json::array();
    for (const int64_t label : largest_first(answers)) {
      int64_t pixels = 0;
      double sure = 0;
      for (size_t k = 0; k < answers.size(); ++k) {
        if (answers[k] != label) continue;
        ++pixels;
        sure += std::exp(static_cast<double>(logs[static_cast<size_t>(label) * answers.size() + k]));
      }
      Json region = Json::object();
      region["class"] = names_[static_cast<size_t>(label)];
      region["label"] = label;
      region["share"] = rounded(static_cast<double>(pixels) / static_cast<double>(answers.size()));
      region["confidence"] = rounded(sure / static_cast<double>(pixels));
      region["segmentation"]["size"] = Json::array({height, width});
      region["segmentation"]["counts"] =
          image::compress_runs(image::encode_runs(mask_of(answers, label, width, height)));
      regions.push_back(std::move(region));
    }
    Json record = Json::object();
    record["width"] = width;
    record["height"] = height;
    record["regions"] = std::move(regions);
    return record;
  }

  std::string line(const Json& record) const override {  // "background 61.2 %, cat 38.8 %"
    std::vector<std::string> words;
    for (const Json& region : record.at("regions").items())
      words.push_back(text(region.at("class").as_string(), " ", base::percent(region.at("share").as_double(), 1)));
    return base::join(words, ", ");
  }
  std::vector<std::string> columns(int64_t /*top*/) const override { return {"classes", "shares", "confidences"}; }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    std::vector<std::string> names, shares, confidences;
    for (const Json& region : record.at("regions").items()) {
      names.push_back(region.at("class").as_string());
      shares.push_back(base::fixed(region.at("share").as_double(), 4));
      confidences.push_back(base::fixed(region.at("confidence").as_double(), 4));
    }
    return {base::join(names, "|"), base::join(shares, "|"), base::join(confidences, "|")};
  }

  bool draw(const Json& record, image::Image& on) const override {
    const Json* regions = record.find("regions");
    if (!regions || !regions->is_array()) return false;
    const int64_t width = record.at("width").as_int(), height = record.at("height").as_int();
    const int64_t zoom = image::fitting_zoom(on);
    int64_t y = zoom;
    for (const Json& region : regions->items()) {
      const std::string& name = region.at("class").as_string();
      const image::Color color = image::class_color(region.at("label").as_int());
      if (name == kBackground) continue;
      image::blend_mask(on, image::rasterize_mask(region.at("segmentation"), width, height), color, kLabelShare);
    }
    for (const Json& region : regions->items()) {
      const std::string& name = region.at("class").as_string();
      if (name == kBackground || region.at("share").as_double() < kLeastNamed) continue;
      image::draw_label(on, text(name, " ", base::percent(region.at("share").as_double(), 0)), zoom, y,
                        image::class_color(region.at("label").as_int()), zoom);
      y += (image::kLetterHeight + 3) * zoom;
    }
    return true;
  }

 private:
  static Json rounded(double value) { return {std::round(value * 1e6) / 1e6}; }

  std::vector<int64_t> largest_first(const std::vector<uint8_t>& answers) const {
    std::vector<int64_t> counts(names_.size()), labels;
    for (const uint8_t answer : answers) ++counts[answer];
    for (int64_t label = 0; label < num_outputs(); ++label) {
      if (counts[static_cast<size_t>(label)] > 0) labels.push_back(label);
    }
    std::stable_sort(labels.begin(), labels.end(), [&](int64_t a, int64_t b) {
      return counts[static_cast<size_t>(a)] > counts[static_cast<size_t>(b)];
    });
    return labels;
  }

  // From the network's pixels to those of the image: the nearest.
  image::Mask mask_of(const std::vector<uint8_t>& answers, int64_t label, int64_t width, int64_t height) const {
    const spec::ImageSize& size = job_.data.image_size;
    image::Mask mask(width, height);
    for (int64_t y = 0; y < height; ++y) {
      const int64_t row = (2 * y + 1) * size.height / (2 * height) * size.width;
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from = row + (2 * x + 1) * size.width / (2 * width);
        mask.inside[static_cast<size_t>(y * width + x)] = answers[static_cast<size_t>(from)] == label;
      }
    }
    return mask;
  }

  spec::Job job_;
  std::vector<std::string> names_;    // by label
  std::vector<std::string> classes_;  // of the data
};

}  // namespace

std::vector<std::string> segment_names(const spec::Segment& segment, const std::vector<std::string>& classes) {
  if (!segment.classes.empty()) return segment.classes;
  if (classes.empty() || segment.pixels == spec::LabelPixels::labels) return classes;
  std::vector<std::string> names{kBackground};
  names.insert(names.end(), classes.begin(), classes.end());
  return names;
}

std::unique_ptr<Task> make_segment(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<Segment>(job, std::move(classes));
}

}  // namespace lockstep::task
