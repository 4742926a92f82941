// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/task/kept_rows.h"

namespace lockstep::task {

// What KITTI's evaluation tells apart. Names compare without case; all that it does not know is `other`.
enum class KittiType : int32_t { car, pedestrian, cyclist, van, person_sitting, dont_care, other };
KittiType kitti_type(std::string_view name);

struct KittiTruth {
  KittiType type = KittiType::car;
  std::array<double, 4> box = {};  // x1, y1, x2, y2 in pixels
  double truncation = 0;           // 0 to 1
  int64_t occlusion = 0;           // 0 to 3
};

struct KittiDetection {
  KittiType type = KittiType::car;
  std::array<double, 4> box = {};
  double score = 0;  // on any scale
};

struct KittiImage {
  int64_t id = 0;  // of its own among all that are scored
  std::vector<KittiTruth> truths = {};
  std::vector<KittiDetection> detections = {};
};

// devkit: as KITTI's own program. kittibox: low detections count like all others, as in KittiBox's copy of it, whose
// published figures are `mean41` by this rule.
enum class KittiRule { devkit, kittibox };

// One class at one level. 0 where nothing was found or there is nothing to find.
struct KittiLevel {
  int64_t truths = 0;  // that count at this level
  double ap11 = 0;     // mean precision at recall 0, 0.1, ..., 1
  double ap40 = 0;     // at 1/40, 2/40, ..., 1: KITTI's table since October 2019
  double mean41 = 0;   // at 0, 1/40, ..., 1: KittiBox

  bool operator==(const KittiLevel&) const = default;
};

struct KittiClass {
  std::string name;
  bool is_detected = false;               // KITTI's own program scores no class that nobody detects
  std::array<KittiLevel, 3> levels = {};  // as kKittiLevels

  bool operator==(const KittiClass&) const = default;
};

inline constexpr std::array<const char*, 3> kKittiLevels = {"easy", "moderate", "hard"};

// KITTI's 2D object evaluation. Images come in any order, on any ranks: the same figures, to the last bit.
class KittiScore {
 public:
  // Detections whose box or score is not finite are left out and counted. REQUIRES: an id that was not added before.
  void add(const KittiImage& image);
  std::string pack() const { return rows_.pack(); }
  void merge(std::string_view packed) { rows_.merge(packed); }

  int64_t images() const;
  int64_t nonfinite() const;                                                    // detections that were left out
  std::array<KittiClass, 3> figures(KittiRule rule = KittiRule::devkit) const;  // Car, Pedestrian, Cyclist

 private:
  enum class Kind : int32_t { image, truth, detection, nonfinite };
  struct Row {
    int64_t id;
    Kind kind;
    KittiType type;
    std::array<double, 4> box;
    double value;  // truncation, or score
    int64_t occlusion;
  };
  int64_t count(Kind kind) const;

  KeptRows<Row> rows_;  // of each image one by itself, then what is in it
};

}  // namespace lockstep::task
