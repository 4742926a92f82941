// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/detect_score.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/coco_score.h"
#include "lockstep/task/kept_rows.h"
#include "lockstep/task/kitti_score.h"

namespace lockstep::task {
namespace {

using base::fixed;
using base::Json;
using base::text;
using image::Box;

constexpr double kSame = 0.5;  // overlap from which on a found box is that of an object, for the list of the worst

double detect_overlap(const Box& a, const Box& b) {  // intersection over union
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (a.area() + b.area() - width * height);
}

double hundredths(double value) {
  return std::round(value * 100) / 100;
}

Json box_json(const Box& box) {
  return Json::array(
      {hundredths(box.left), hundredths(box.top), hundredths(box.right - box.left), hundredths(box.bottom - box.top)});
}

// How boxes are scored: what differs between the protocols.
class DetectProtocol {
 public:
  virtual ~DetectProtocol() = default;
  virtual void add(int64_t id, const AnnotatedImage& image, const std::vector<FoundBox>& found) = 0;
  virtual std::string pack() const = 0;
  virtual void merge(std::string_view packed) = 0;
  virtual Headline headline() const = 0;
  virtual Json figures() const = 0;
  virtual std::string line() const = 0;
};

// KittiBox's figures (mean of 41 recalls, low boxes count) first; beside them those of KITTI's own program.
class ByKitti final : public DetectProtocol {
 public:
  ByKitti(const spec::Detect& how, const DetectClasses& classes)
      : name_(how.classes.front()), type_(kitti_type(name_)), classes_(classes) {}

  void add(int64_t id, const AnnotatedImage& image, const std::vector<FoundBox>& found) override {
    KittiImage scored{.id = id};
    const auto corners = [](const Box& box) { return std::array{box.left, box.top, box.right, box.bottom}; };
    for (const Object& object : image.objects) {
      const KittiType type = kitti_type(classes_.names[static_cast<size_t>(object.label)]);
      scored.truths.push_back(
          {object.crowd ? KittiType::dont_care : type, corners(object.box), object.truncated, object.occluded});
    }
    for (const FoundBox& one : found) scored.detections.push_back({type_, corners(one.box), one.score});
    score_.add(scored);
  }
  std::string pack() const override { return score_.pack(); }
  void merge(std::string_view packed) override { score_.merge(packed); }
  Headline headline() const override {
    const double value = levels(KittiRule::kittibox)[1].mean41;
    return {"moderate", value, true, text("AP moderate ", base::percent(value))};
  }
  Json figures() const override {
    Json all = Json::object();
    const auto kittibox = levels(KittiRule::kittibox), devkit = levels(KittiRule::devkit);
    for (size_t i = 0; i < kKittiLevels.size(); ++i) all[kKittiLevels[i]] = kittibox[i].mean41;
    for (size_t i = 0; i < kKittiLevels.size(); ++i) all[text("ap11_", kKittiLevels[i])] = devkit[i].ap11;
    for (size_t i = 0; i < kKittiLevels.size(); ++i) all[text("ap40_", kKittiLevels[i])] = devkit[i].ap40;
    return all;
  }
  std::string line() const override {
    const auto at = levels(KittiRule::kittibox);
    return text(name_, " AP easy ", fixed(at[0].mean41, 4), "  moderate ", fixed(at[1].mean41, 4), "  hard ",
                fixed(at[2].mean41, 4), "  (", at[0].truths, ", ", at[1].truths, ", ", at[2].truths, " objects)");
  }

 private:
  std::array<KittiLevel, 3> levels(KittiRule rule) const {
    const size_t index = type_ == KittiType::car ? 0 : type_ == KittiType::pedestrian ? 1 : 2;
    return score_.figures(rule)[index].levels;
  }

  std::string name_;
  KittiType type_;
  const DetectClasses& classes_;
  KittiScore score_;
};

class ByCoco final : public DetectProtocol {
 public:
  explicit ByCoco(const DetectClasses& classes) : classes_(classes), score_(1, CocoIou::bbox) {}

  void add(int64_t id, const AnnotatedImage& image, const std::vector<FoundBox>& found) override {
    CocoImage scored{.id = id, .height = image.height};
    const auto sides = [](const Box& box) {
      return std::array{box.left, box.top, box.right - box.left, box.bottom - box.top};
    };
    for (const Object& object : image.objects) {
      const bool ignored = classes_.ignores(object);
      if (!ignored && !classes_.wants(object)) continue;
      CocoTruth& truth = scored.truths.emplace_back();
      truth.box = sides(object.box);
      truth.area = object.area;
      truth.is_crowd = ignored;
    }
    for (const FoundBox& one : found) {
      CocoDetection& detection = scored.detections.emplace_back();
      detection.box = sides(one.box);
      detection.score = one.score;
      detection.area = one.box.area();
    }
    score_.add(scored);
  }
  std::string pack() const override { return score_.pack(); }
  void merge(std::string_view packed) override { score_.merge(packed); }
  Headline headline() const override {
    const double value = score_.figures().ap50;
    return {"ap50", value, true, text("AP50 ", base::percent(value))};
  }
  Json figures() const override {
    const CocoFigures found = score_.figures();
    Json all = Json::object();
    for (const auto& [name, value] : kCocoFigures) all[name] = found.*value;
    return all;
  }
  std::string line() const override {
    const CocoFigures found = score_.figures();
    return text("AP50 ", fixed(found.ap50, 4), "  AP ", fixed(found.ap, 4), "  AP75 ", fixed(found.ap75, 4), "  (",
                found.classes[0].truths, " objects)");
  }

 private:
  const DetectClasses& classes_;
  CocoScore score_;
};

// Beside the protocol what a person wants to see of each image: the objects looked for, and the boxes told.
class DetectScore final : public Score {
 public:
  DetectScore(const spec::Job& job, const DetectClasses& classes, int64_t worst)
      : canvas_(job.data.image_size), how_(job.detect), classes_(classes), keep_(static_cast<size_t>(worst)) {
    if (how_.protocol == spec::Protocol::kitti) {
      protocol_ = std::make_unique<ByKitti>(how_, classes_);
    } else {
      protocol_ = std::make_unique<ByCoco>(classes_);
    }
  }

  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<size_t>(i);
      if (row >= rows.annotations.size() || rows.annotations[row].empty()) continue;  // it could not be read
      const int64_t id = rows.sample_ids[row];
      const AnnotatedImage image =
          read_objects(base::parse_json(rows.annotations[row], "the sample's json"), classes_.names);
      const auto found = found_boxes(rows, i, canvas_, image.width, image.height);
      protocol_->add(id, image, found);
      kept_.add({id, Kind::image, static_cast<double>(image.width), static_cast<double>(image.height), {}});
      for (const Object& object : image.objects) {
        if (classes_.wants(object) && object.is_seen()) kept_.add({id, Kind::truth, 0, 0, object.inside});
        if (classes_.ignores(object)) kept_.add({id, Kind::ignored, 0, 0, object.inside});
      }
      for (const FoundBox& one : found) {
        if (one.score >= how_.threshold) kept_.add({id, Kind::told, one.score, 0, one.box});
      }
      ++samples_;
    }
  }

  // Two texts, the first with its length in front.
  std::string pack() const override {
    const std::string first = protocol_->pack();
    const auto length = static_cast<int64_t>(first.size());
    std::string all(reinterpret_cast<const char*>(&length), sizeof length);
    all.append(reinterpret_cast<const char*>(&samples_), sizeof samples_);
    return all + first + kept_.pack();
  }
  void merge(std::string_view packed) override {
    int64_t length = 0, samples = 0;
    base::ensure(packed.size() >= sizeof length + sizeof samples, "ranks hand over whole scores");
    std::memcpy(&length, packed.data(), sizeof length);
    std::memcpy(&samples, packed.data() + sizeof length, sizeof samples);
    packed.remove_prefix(sizeof length + sizeof samples);
    protocol_->merge(packed.substr(0, static_cast<size_t>(length)));
    kept_.merge(packed.substr(static_cast<size_t>(length)));
    samples_ += samples;
  }

  int64_t samples() const override { return samples_; }
  Headline headline() const override { return protocol_->headline(); }
  Json figures() const override { return protocol_->figures(); }
  std::string line() const override { return protocol_->line(); }
  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    all["worst"] = Json::array();
    std::vector<Sheet> sheets = read_sheets();
    std::stable_sort(sheets.begin(), sheets.end(),
                     [](const Sheet& a, const Sheet& b) { return a.mistakes() > b.mistakes(); });
    for (size_t i = 0; i < std::min(sheets.size(), keep_) && sheets[i].mistakes() > 0; ++i) {
      all["worst"].push_back(mistake(sheets[i]));
    }
    return all;
  }

 private:
  enum class Kind : int64_t { image, truth, ignored, told };
  struct Row {
    int64_t id;
    Kind kind;
    double first, second;  // of an image width and height, of a box that was told its score
    Box box;
  };
  struct Sheet {
    int64_t id = 0, width = 0, height = 0;
    std::vector<Box> truths = {}, ignored = {};
    std::vector<FoundBox> told = {};
    int64_t missed = 0, invented = 0;

    int64_t mistakes() const { return missed + invented; }
    void count() {
      std::vector<bool> is_found(truths.size(), false);
      for (const FoundBox& one : told) {  // surest first
        size_t best = truths.size();
        for (size_t i = 0; i < truths.size(); ++i) {
          const double least = best < truths.size() ? detect_overlap(one.box, truths[best]) : kSame;
          if (!is_found[i] && detect_overlap(one.box, truths[i]) >= least) best = i;
        }
        if (best < truths.size()) {
          is_found[best] = true;
        } else if (std::none_of(ignored.begin(), ignored.end(),
                                [&](const Box& region) { return detect_overlap(one.box, region) > 0; })) {
          ++invented;
        }
      }
      missed = std::count(is_found.begin(), is_found.end(), false);
    }
  };

  std::vector<Sheet> read_sheets() const {
    std::map<int64_t, Sheet> all;
    for (const Row& row : kept_.in_order()) {
      Sheet& sheet = all[row.id];
      sheet.id = row.id;
      if (row.kind == Kind::image) {
        sheet.width = std::llround(row.first);
        sheet.height = std::llround(row.second);
      }
      if (row.kind == Kind::truth) sheet.truths.push_back(row.box);
      if (row.kind == Kind::ignored) sheet.ignored.push_back(row.box);
      if (row.kind == Kind::told) sheet.told.push_back({row.box, row.first});
    }
    std::vector<Sheet> sheets;
    for (auto& [id, sheet] : all) {
      sheet.count();
      sheets.push_back(std::move(sheet));
    }
    return sheets;
  }

  // "record": what Task::draw takes, with the objects that were looked for besides.
  Json mistake(const Sheet& sheet) const {
    Json one = Json::object();
    one["sample"] = sheet.id;
    one["target"] = text(sheet.truths.size(), sheet.truths.size() == 1 ? " object" : " objects");
    one["predicted"] = text(sheet.missed, " missed, ", sheet.invented, " that are none");
    one["loss"] = sheet.mistakes();
    one["record"] = detect_record(sheet.width, sheet.height, sheet.told, classes_);
    one["record"]["truths"] = Json::array();
    for (const Box& truth : sheet.truths) {
      Json object = Json::object();
      object["box"] = box_json(truth);
      one["record"]["truths"].push_back(std::move(object));
    }
    return one;
  }

  spec::ImageSize canvas_;
  spec::Detect how_;
  DetectClasses classes_;
  size_t keep_;
  std::unique_ptr<DetectProtocol> protocol_;
  KeptRows<Row> kept_;
  int64_t samples_ = 0;
};

}  // namespace

std::vector<FoundBox> found_boxes(const Rows& rows, int64_t i, const spec::ImageSize& canvas, int64_t width,
                                  int64_t height) {
  const auto boxes = rows.output("boxes").row(i), scores = rows.output("scores").row(i);
  const auto wide = static_cast<double>(width), high = static_cast<double>(height);
  const double across = wide / static_cast<double>(canvas.width), down = high / static_cast<double>(canvas.height);
  std::vector<FoundBox> found;
  for (size_t k = 0; k < scores.size() && scores[k] > 0; ++k) {
    const auto edge = [&](size_t side) { return static_cast<double>(boxes[4 * k + side]); };
    const Box box{std::clamp(edge(0) * across, 0.0, wide), std::clamp(edge(1) * down, 0.0, high),
                  std::clamp(edge(2) * across, 0.0, wide), std::clamp(edge(3) * down, 0.0, high)};
    if (box.area() > 0) found.push_back({box, static_cast<double>(scores[k])});
  }
  return found;
}

Json detect_record(int64_t width, int64_t height, const std::vector<FoundBox>& found, const DetectClasses& classes) {
  Json record = Json::object();
  record["width"] = width;
  record["height"] = height;
  record["objects"] = Json::array();
  for (const FoundBox& one : found) {
    Json object = Json::object();
    object["class"] = classes.told;
    object["label"] = classes.told_label;
    object["score"] = one.score;
    object["box"] = box_json(one.box);
    record["objects"].push_back(std::move(object));
  }
  return record;
}

std::unique_ptr<Score> make_detect_score(const spec::Job& job, const DetectClasses& classes, int64_t worst) {
  return std::make_unique<DetectScore>(job, classes, worst);
}

}  // namespace lockstep::task
