// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/score_files.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::eval {
namespace {

using base::Align;
using base::fixed;
using base::Json;
using base::text;

std::string figure_text(double value) {
  return value < 0 ? "-" : fixed(value, 4);
}

std::string lower_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string all = notes.empty() ? "" : "\n";
  for (const auto& note : notes) all += text("note: ", note, "\n");
  return all;
}

struct CocoRow {  // of the table, as kCocoFigures
  const char* name;
  const char* overlap;
  const char* area;
  const char* most;
};
constexpr std::array<CocoRow, 12> kCocoRows = {{{"AP", ".50:.95", "all", "100"},
                                                {"AP", ".50", "all", "100"},
                                                {"AP", ".75", "all", "100"},
                                                {"AP", ".50:.95", "small", "100"},
                                                {"AP", ".50:.95", "medium", "100"},
                                                {"AP", ".50:.95", "large", "100"},
                                                {"AR", ".50:.95", "all", "1"},
                                                {"AR", ".50:.95", "all", "10"},
                                                {"AR", ".50:.95", "all", "100"},
                                                {"AR", ".50:.95", "small", "100"},
                                                {"AR", ".50:.95", "medium", "100"},
                                                {"AR", ".50:.95", "large", "100"}}};

}  // namespace

Json coco_json(const sources::CocoEvaluation& evaluation, task::CocoIou iou) {
  Json all = Json::object();
  all["protocol"] = "coco";
  all["iou"] = iou == task::CocoIou::bbox ? "bbox" : "segm";
  all["images"] = evaluation.images;
  all["truths"] = evaluation.truths;
  all["detections"] = evaluation.detections;
  for (const auto& figure : task::kCocoFigures) all[figure.name] = evaluation.figures.*figure.value;
  all["classes"] = Json::array();
  for (size_t i = 0; i < evaluation.classes.size(); ++i) {
    const task::CocoClass& one = evaluation.figures.classes[i];
    Json row = Json::object();
    row["name"] = evaluation.classes[i];
    row["truths"] = one.truths;
    row["ap"] = one.ap;
    row["ap50"] = one.ap50;
    row["ap75"] = one.ap75;
    all["classes"].push_back(std::move(row));
  }
  all["notes"] = Json::array_of(evaluation.notes);
  return all;
}

std::string coco_text(const sources::CocoEvaluation& evaluation, task::CocoIou iou) {
  base::Table table({{"figure"}, {"overlap"}, {"area"}, {"detections", Align::right}, {"value", Align::right}});
  for (size_t i = 0; i < kCocoRows.size(); ++i) {
    const CocoRow& row = kCocoRows[i];
    table.add(
        {row.name, row.overlap, row.area, row.most, figure_text(evaluation.figures.*task::kCocoFigures[i].value)});
  }
  base::Table classes(
      {{"class"}, {"objects", Align::right}, {"AP", Align::right}, {"AP .50", Align::right}, {"AP .75", Align::right}});
  for (size_t i = 0; i < evaluation.classes.size(); ++i) {
    const task::CocoClass& one = evaluation.figures.classes[i];
    classes.add({evaluation.classes[i], std::to_string(one.truths), figure_text(one.ap), figure_text(one.ap50),
                 figure_text(one.ap75)});
  }
  return text("COCO, ", iou == task::CocoIou::bbox ? "boxes" : "masks", ": ", evaluation.detections, " detections of ",
              evaluation.truths, " objects in ", evaluation.images, " images\n\n", table.to_text(), "\n",
              classes.to_text(), notes_text(evaluation.notes));
}

Json kitti_json(const sources::KittiEvaluation& evaluation) {
  Json all = Json::object();
  all["protocol"] = "kitti";
  all["images"] = evaluation.images;
  all["truths"] = evaluation.truths;
  all["detections"] = evaluation.detections;
  for (size_t c = 0; c < evaluation.devkit.size(); ++c) {
    const task::KittiClass& one = evaluation.devkit[c];
    for (size_t l = 0; l < one.levels.size(); ++l) {
      const std::string key = text(lower_case(one.name), "_", task::kKittiLevels[l], "_");
      const auto figure = [&](double value) { return one.is_detected ? Json(value) : Json(); };
      all[key + "truths"] = one.levels[l].truths;
      all[key + "ap11"] = figure(one.levels[l].ap11);
      all[key + "ap40"] = figure(one.levels[l].ap40);
      all[key + "mean41"] = figure(one.levels[l].mean41);
      all[key + "kittibox"] = figure(evaluation.kittibox[c].levels[l].mean41);
    }
  }
  all["notes"] = Json::array_of(evaluation.notes);
  return all;
}

std::string kitti_text(const sources::KittiEvaluation& evaluation) {
  base::Table table({{"class"},
                     {"level"},
                     {"objects", Align::right},
                     {"AP11", Align::right},
                     {"AP40", Align::right},
                     {"mean of 41", Align::right},
                     {"KittiBox", Align::right}});
  for (size_t c = 0; c < evaluation.devkit.size(); ++c) {
    const task::KittiClass& one = evaluation.devkit[c];
    for (size_t l = 0; l < one.levels.size(); ++l) {
      const auto figure = [&](double value) { return figure_text(one.is_detected ? value : -1); };
      table.add({one.name, task::kKittiLevels[l], std::to_string(one.levels[l].truths), figure(one.levels[l].ap11),
                 figure(one.levels[l].ap40), figure(one.levels[l].mean41),
                 figure(evaluation.kittibox[c].levels[l].mean41)});
    }
  }
  return text(
      "KITTI: ", evaluation.detections, " detections in ", evaluation.images, " images\n\n", table.to_text(),
      "\nAP40 is KITTI's own table since October 2019, AP11 the one before; KittiBox's figures are the mean of 41\n"
      "with low detections counted.\n",
      notes_text(evaluation.notes));
}

}  // namespace lockstep::verbs::eval
