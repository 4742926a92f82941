// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/task/kept_rows.h"

namespace lockstep::task {

enum class CocoIou { bbox, segm };  // what overlaps: boxes, or masks

struct CocoTruth {
  int64_t label = 0;               // from 0
  std::array<double, 4> box = {};  // x, y, width, height in pixels
  double area = 0;                 // as annotated: it decides between small, medium and large
  bool is_crowd = false;
  std::vector<int64_t> runs = {};  // the mask, for segm (image/runs.h)
};

struct CocoDetection {
  int64_t label = 0;
  std::array<double, 4> box = {};
  double score = 0;
  double area = 0;  // pycocotools takes width * height of its box, or the pixels of its mask where there is no box
  std::vector<int64_t> runs = {};
};

struct CocoImage {
  int64_t id = 0;      // of its own among all that are scored; equal scores are ordered by it
  int64_t height = 0;  // of the masks
  std::vector<CocoTruth> truths = {};
  std::vector<CocoDetection> detections = {};
};

// All of them are -1 where there is nothing to find.
struct CocoClass {
  int64_t truths = 0;  // without crowds
  double ap = -1;
  double ap50 = -1;
  double ap75 = -1;

  bool operator==(const CocoClass&) const = default;
};

struct CocoFigures {
  double ap = -1;  // mean over the overlaps .5, .55, ..., .95
  double ap50 = -1;
  double ap75 = -1;
  double ap_small = -1;  // up to 32 x 32 pixels
  double ap_medium = -1;
  double ap_large = -1;  // from 96 x 96
  double ar1 = -1;       // recall with one detection of a class in an image
  double ar10 = -1;
  double ar100 = -1;
  double ar_small = -1;
  double ar_medium = -1;
  double ar_large = -1;
  std::vector<CocoClass> classes = {};  // by label

  bool operator==(const CocoFigures&) const = default;
};

// The twelve by the names that JSON documents have them under, in the order of pycocotools' stats.
struct NamedFigure {
  const char* name;
  double CocoFigures::*value;
};
inline constexpr std::array<NamedFigure, 12> kCocoFigures = {{{"ap", &CocoFigures::ap},
                                                              {"ap50", &CocoFigures::ap50},
                                                              {"ap75", &CocoFigures::ap75},
                                                              {"ap_small", &CocoFigures::ap_small},
                                                              {"ap_medium", &CocoFigures::ap_medium},
                                                              {"ap_large", &CocoFigures::ap_large},
                                                              {"ar1", &CocoFigures::ar1},
                                                              {"ar10", &CocoFigures::ar10},
                                                              {"ar100", &CocoFigures::ar100},
                                                              {"ar_small", &CocoFigures::ar_small},
                                                              {"ar_medium", &CocoFigures::ar_medium},
                                                              {"ar_large", &CocoFigures::ar_large}}};

// COCO's evaluation of boxes or masks: the figures of pycocotools. Each image is matched when it is added and only the
// outcome is kept, 40 bytes a detection. Images come in any order, on any ranks: the same figures, to the last bit.
class CocoScore {
 public:
  CocoScore(int64_t num_classes, CocoIou iou);

  // Detections whose box or score is not finite are left out and counted. REQUIRES: an id that was not added before;
  // labels below num_classes; with segm runs of one size for all.
  void add(const CocoImage& image);
  std::string pack() const;
  void merge(std::string_view packed);

  int64_t images() const { return counts_[0]; }
  int64_t nonfinite() const { return counts_[1]; }  // detections that were left out
  CocoFigures figures() const;

 private:
  struct Row {  // of a detection, one of the best 100 of its class in its image
    int64_t id;
    double score;
    int32_t label;
    int32_t rank;      // by score, within its class and image
    uint64_t matched;  // a bit for each area range and overlap: bit range * 10 + overlap
    uint64_t ignored;
  };
  struct Matching;
  void add_class(const Matching& matching);
  int64_t& truths(int64_t label, size_t range) { return counts_[2 + 4 * static_cast<size_t>(label) + range]; }

  int64_t num_classes_;
  CocoIou iou_;
  std::vector<int64_t> counts_;  // images, nonfinite, then of each class the truths that count in each area range
  KeptRows<Row> rows_;
};

}  // namespace lockstep::task
