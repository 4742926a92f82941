// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_score.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/runs.h"
#include "lockstep/task/coco_score.h"
#include "lockstep/task/instances_rows.h"
#include "lockstep/task/json_member.h"
#include "lockstep/task/kept_rows.h"
#include "lockstep/task/objects.h"

namespace lockstep::task {
namespace {

using base::Json;
using base::percent;
using base::text;

constexpr double kSure = 0.5;          // score from which on a detection is a mistake where nothing is
constexpr double kOverlap = 0.5;       // intersection over union from which on an object counts as found
constexpr size_t kMostClassRows = 60;  // of the table on a terminal

// What went wrong on one image.
struct Mistakes {
  int64_t id = 0;
  int64_t objects = 0;
  int64_t missed = 0;
  int64_t wrong = 0;  // told where there is nothing of the kind

  int64_t all() const { return missed + wrong; }
  double mark() const { return -static_cast<double>(all()); }  // of WorstRecords
};

double common_area(const std::array<double, 4>& a, const std::array<double, 4>& b) {  // x, y, width, height
  const double width = std::min(a[0] + a[2], b[0] + b[2]) - std::max(a[0], b[0]);
  const double height = std::min(a[1] + a[3], b[1] + b[3]) - std::max(a[1], b[1]);
  return width > 0 && height > 0 ? width * height : 0;
}

Mistakes find_mistakes(const CocoImage& image) {
  Mistakes found{.id = image.id};
  std::vector<char> is_found(image.truths.size());
  for (const CocoDetection& detection : image.detections) {  // surest first
    if (detection.score < kSure) break;
    const double area = detection.box[2] * detection.box[3];
    double best = kOverlap;
    size_t match = image.truths.size();
    bool is_of_crowd = false;
    for (size_t i = 0; i < image.truths.size(); ++i) {
      const CocoTruth& truth = image.truths[i];
      if (truth.label != detection.label) continue;
      const double common = common_area(truth.box, detection.box);
      if (truth.is_crowd) is_of_crowd |= common > kOverlap * area;
      if (truth.is_crowd || is_found[i] != 0) continue;
      const double overlap = common / std::max(1e-9, truth.box[2] * truth.box[3] + area - common);
      if (overlap >= best) best = overlap, match = i;
    }
    if (match < is_found.size()) is_found[match] = 1;
    found.wrong += match == is_found.size() && !is_of_crowd;
  }
  for (size_t i = 0; i < image.truths.size(); ++i) {
    found.objects += !image.truths[i].is_crowd;
    found.missed += !image.truths[i].is_crowd && is_found[i] == 0;
  }
  return found;
}

base::Json outline_of(const image::Box& box) {
  const std::array<double, 8> corners{box.left,  box.top,    box.right, box.top,
                                      box.right, box.bottom, box.left,  box.bottom};
  return Json::array({Json::array_of(corners)});
}

CocoTruth truth_of(const Object& object) {
  const image::Box& box = object.box;
  return {.label = object.label,
          .box = {box.left, box.top, box.right - box.left, box.bottom - box.top},
          .area = object.area,
          .is_crowd = object.crowd};
}

CocoDetection detection_of(const Detection& one) {
  CocoDetection detection{.label = one.label, .score = one.score};
  detection.box = {one.box[0], one.box[1], double{one.box[2]} - double{one.box[0]},
                   double{one.box[3]} - double{one.box[1]}};
  detection.area = detection.box[2] * detection.box[3];
  return detection;
}

// -1: there was nothing to find.
std::string figure_text(double figure) {
  return figure < 0 ? "-" : percent(figure, 2);
}

Json or_null(double figure) {
  return figure < 0 ? Json() : Json(figure);
}

class InstancesScore final : public Score {
 public:
  InstancesScore(std::vector<std::string> classes, bool has_masks, int64_t worst,
                 std::shared_ptr<const Context> context)
      : classes_(std::move(classes)),
        has_masks_(has_masks),
        context_(std::move(context)),
        keep_(static_cast<size_t>(std::max<int64_t>(worst, 0))),
        boxes_(std::ssize(classes_), CocoIou::bbox),
        masks_(std::ssize(classes_), CocoIou::segm),
        plain_(std::ssize(classes_), has_masks ? CocoIou::segm : CocoIou::bbox),
        pictures_(worst) {}

  void add(const Rows& rows) override {
    summed_.reset();
    base::ensure(std::ssize(rows.annotations) == rows.size(), "rows of objects have annotations");
    for (int64_t i = 0; i < rows.size(); ++i) {
      const std::string& words = rows.annotations[static_cast<size_t>(i)];
      if (words.empty()) continue;  // it could not be read
      AnnotatedImage annotated = read_objects(std::as_bytes(std::span(words.data(), words.size())), classes_);
      if (has_masks_) drop_bad_outlines(annotated);
      const auto found =
          detections_of(rows, i, {annotated.width, annotated.height}, std::ssize(classes_), context_.get());
      CocoImage image{.id = rows.sample_ids[static_cast<size_t>(i)], .height = annotated.height};
      for (const Object& object : annotated.objects) image.truths.push_back(truth_of(object));
      for (const Detection& one : found) image.detections.push_back(detection_of(one));
      boxes_.add(image);
      mistakes_.add(find_mistakes(image));
      keep_picture(mistakes_.as_added().back(), annotated, found);
      if (has_masks_) add_masks(annotated, found, image);
      if (!context_) continue;
      for (size_t k = 0; k < found.size(); ++k) image.detections[k].score = found[k].plain_score;
      plain_.add(image);
    }
  }

  std::string pack() const override {
    return join_parts({boxes_.pack(), masks_.pack(), plain_.pack(), mistakes_.pack(), pictures_.pack()});
  }
  void merge(std::string_view packed) override {
    summed_.reset();
    boxes_.merge(next_part(packed));
    masks_.merge(next_part(packed));
    plain_.merge(next_part(packed));
    mistakes_.merge(next_part(packed));
    pictures_.merge(next_part(packed));
  }

  int64_t samples() const override { return boxes_.images(); }
  Headline headline() const override {
    const bool of_masks = has_masks_ && summed().masks.ap >= 0;  // else nobody has drawn an outline
    const double ap = (of_masks ? summed().masks : summed().boxes).ap;
    return {of_masks ? "mask_ap" : "box_ap", ap < 0 ? std::nan("") : ap, true,
            text(of_masks ? "mask" : "box", " AP ", figure_text(ap))};
  }
  Json figures() const override {
    Json all = Json::object();
    const auto put = [&](const std::string& kind, const CocoFigures& figures) {
      all[kind + "_ap"] = or_null(figures.ap);
      all[kind + "_ap50"] = or_null(figures.ap50);
      all[kind + "_ap75"] = or_null(figures.ap75);
    };
    if (has_masks_) put("mask", summed().masks);
    put("box", summed().boxes);
    if (context_) all["ap_without_context"] = or_null(summed().plain.ap);
    return all;
  }
  std::string line() const override {
    const auto words = [](const char* kind, const CocoFigures& figures) {
      return text(kind, " AP ", figure_text(figures.ap), "  AP50 ", figure_text(figures.ap50), "  AP75 ",
                  figure_text(figures.ap75));
    };
    return text(has_masks_ ? words("mask", summed().masks) + "  " : "", words("box", summed().boxes),
                context_ ? text("  without context AP ", figure_text(summed().plain.ap)) : "");
  }

  Json to_json() const override {
    const CocoFigures &boxes = summed().boxes, &masks = summed().masks;
    Json all = figures();
    all["samples"] = samples();
    if (has_masks_) all["masks"] = all_figures(masks);
    all["boxes"] = all_figures(boxes);
    all["classes"] = Json::array();
    for (size_t c = 0; c < classes_.size(); ++c) {
      Json row = Json::object();
      row["name"] = classes_[c];
      row["samples"] = boxes.classes[c].truths;
      row["average_precision"] = or_null((has_masks_ ? masks : boxes).classes[c].ap);
      if (has_masks_) row["mask_ap50"] = or_null(masks.classes[c].ap50);
      row["box_ap"] = or_null(boxes.classes[c].ap);
      row["box_ap50"] = or_null(boxes.classes[c].ap50);
      all["classes"].push_back(std::move(row));
    }
    if (boxes_.nonfinite() > 0) all["nonfinite"] = boxes_.nonfinite();
    all["worst"] = worst_json();
    return all;
  }

  std::string to_text() const override {
    const CocoFigures &boxes = summed().boxes, &masks = summed().masks;
    std::vector<base::Column> columns{{"class"}, {"objects", base::Align::right}};
    const auto add_columns = [&](const std::string& kind) {
      for (const char* figure : {" AP", " AP50"}) columns.push_back({kind + figure, base::Align::right});
    };
    if (has_masks_) add_columns("mask");
    add_columns("box");
    base::Table table(columns);
    for (const size_t c : weakest_first(has_masks_ ? masks : boxes)) {
      if (table.rows() == kMostClassRows) break;
      std::vector<std::string> cells{classes_[c], std::to_string(boxes.classes[c].truths)};
      const auto add_cells = [&](const CocoClass& one) {
        for (const double figure : {one.ap, one.ap50}) cells.push_back(figure < 0 ? "-" : percent(figure));
      };
      if (has_masks_) add_cells(masks.classes[c]);
      add_cells(boxes.classes[c]);
      table.add(std::move(cells));
    }
    const size_t rest = classes_.size() - table.rows();
    return text("  ", line(), "\n\n", table.to_text(), rest > 0 ? text("  ... and ", rest, " more\n") : "");
  }

 private:
  struct Figures {
    CocoFigures boxes, masks, plain;
  };

  // Sorting all detections takes time, and one evaluation asks for its figures again and again.
  const Figures& summed() const {
    if (!summed_) summed_ = Figures{boxes_.figures(), masks_.figures(), plain_.figures()};
    return *summed_;
  }

  // The same image, what it shows and what was found as masks.
  void add_masks(const AnnotatedImage& annotated, const std::vector<Detection>& found, CocoImage& image) {
    for (size_t i = 0; i < image.truths.size(); ++i) {
      const Object& object = annotated.objects[i];
      CocoTruth& truth = image.truths[i];
      truth.is_crowd |= object.outline.is_null();
      truth.runs = image::read_segmentation(object.outline.is_null() ? outline_of(object.inside) : object.outline,
                                            annotated.width, annotated.height);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      image.detections[i].runs = found[i].runs(annotated.width, annotated.height);
      image.detections[i].area = static_cast<double>(image::runs_area(image.detections[i].runs));
    }
    masks_.add(image);
  }

  // What Task::draw takes, with the objects that were looked for besides: of the worst images alone.
  void keep_picture(const Mistakes& mistakes, const AnnotatedImage& annotated, const std::vector<Detection>& found) {
    if (mistakes.all() == 0 || !pictures_.takes(mistakes.mark(), mistakes.id)) return;
    Json record = Json::object();
    record["width"] = annotated.width;
    record["height"] = annotated.height;
    record["objects"] = Json::array();
    for (const Detection& one : found) {
      if (one.score < kSure) break;
      record["objects"].push_back(told_object(one, annotated));
    }
    record["truths"] = Json::array();
    for (const Object& object : annotated.objects) {
      if (object.crowd) continue;
      Json truth = Json::object();
      truth["box"] = Json::array_of(truth_of(object).box);
      record["truths"].push_back(std::move(truth));
    }
    pictures_.add(mistakes.mark(), mistakes.id, std::move(record));
  }

  Json told_object(const Detection& one, const AnnotatedImage& image) const {
    Json object = Json::object();
    object["class"] = classes_[static_cast<size_t>(one.label)];
    object["label"] = one.label;
    object["score"] = one.score;
    object["box"] = Json::array_of(detection_of(one).box);
    if (one.mask.empty()) return object;
    object["segmentation"]["size"] = Json::array({image.height, image.width});
    object["segmentation"]["counts"] = image::compress_runs(one.runs(image.width, image.height));
    return object;
  }

  static Json all_figures(const CocoFigures& figures) {
    Json all = Json::object();
    for (const NamedFigure& figure : kCocoFigures) all[figure.name] = or_null(figures.*figure.value);
    return all;
  }

  // Classes of which there is nothing come last.
  static std::vector<size_t> weakest_first(const CocoFigures& figures) {
    std::vector<size_t> order(figures.classes.size());
    for (size_t c = 0; c < order.size(); ++c) order[c] = c;
    const auto strength = [&](size_t c) { return figures.classes[c].ap < 0 ? 2 : figures.classes[c].ap; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strength(a) < strength(b); });
    return order;
  }

  Json worst_json() const {
    std::vector<Mistakes> all = mistakes_.in_order();
    std::erase_if(all, [](const Mistakes& one) { return one.all() == 0; });
    std::stable_sort(all.begin(), all.end(), [](const Mistakes& a, const Mistakes& b) { return a.all() > b.all(); });
    all.resize(std::min(all.size(), keep_));
    Json worst = Json::array();
    for (const Mistakes& one : all) {
      Json row = Json::object();
      row["sample"] = one.id;
      row["target"] = text(one.objects, one.objects == 1 ? " object" : " objects");
      row["predicted"] = text(one.objects - one.missed, " found, ", one.missed, " missed, ", one.wrong, " wrong");
      row["missed"] = one.missed;
      row["wrong"] = one.wrong;
      const auto record = pictures_.worst_first().find({one.mark(), one.id});
      if (record != pictures_.worst_first().end()) row["record"] = record->second;
      worst.push_back(std::move(row));
    }
    return worst;
  }

  std::vector<std::string> classes_;
  bool has_masks_;
  std::shared_ptr<const Context> context_;
  size_t keep_;
  CocoScore boxes_;
  CocoScore masks_;
  CocoScore plain_;  // of the headline's kind, with scores as the network gave them; empty without a context
  KeptRows<Mistakes> mistakes_;
  WorstRecords pictures_;
  mutable std::optional<Figures> summed_;  // none: something was added since
};

}  // namespace

std::unique_ptr<Score> make_instances_score(std::vector<std::string> classes, bool has_masks, int64_t worst,
                                            std::shared_ptr<const Context> context) {
  return std::make_unique<InstancesScore>(std::move(classes), has_masks, worst, std::move(context));
}

}  // namespace lockstep::task
