// sources: lockstep/base/*.cpp lockstep/sources/coco_results.cpp lockstep/sources/json_slices.cpp lockstep/sources/kitti_label.cpp lockstep/sources/kitti_results.cpp lockstep/task/coco_score.cpp lockstep/task/kitti_score.cpp lockstep/image/mask.cpp lockstep/image/runs.cpp lockstep/image/augment*.cpp lockstep/image/decode*.cpp lockstep/image/exif*.cpp lockstep/image/jpeg_*.cpp lockstep/image/png_*.cpp lockstep/image/policy.cpp lockstep/image/re*.cpp lockstep/image/tiff_*.cpp lockstep/image/webp_*.cpp libraries: -ljpeg -lpng -ltiff -lwebp
// SPDX-License-Identifier: Apache-2.0
// Any text is a result file, a list or a label that can be scored, or a user error; the figures are shares.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/sources/coco_results.h"
#include "lockstep/sources/kitti_results.h"

namespace {

using namespace lockstep;

constexpr const char* kTruth =
    R"({"images": [{"id": 1, "width": 20, "height": 10}, {"id": 2, "width": 20, "height": 10}],
  "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
  "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0,
    "segmentation": [[1, 1, 6, 1, 6, 6, 1, 6]]}]})";
constexpr const char* kResults = R"([{"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 4], "score": 0.5,
  "segmentation": [[1, 1, 6, 1, 6, 5, 1, 5]]}])";

template <class Work>
void try_it(const Work& work) {
  try {
    work();
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user || error.fix().empty()) std::abort();
  }
}

void check_share(double value) {
  if (!(value == -1 || (value >= 0 && value <= 1))) std::abort();
}

void score_coco(std::string_view truth, std::string_view results, task::CocoIou iou) {
  try_it([&] {
    const auto all = sources::score_coco({truth, "truth.json"}, {results, "results.json"}, iou);
    for (const auto& figure : task::kCocoFigures) check_share(all.figures.*figure.value);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const auto iou : {task::CocoIou::bbox, task::CocoIou::segm}) {
    score_coco(kTruth, text, iou);
    score_coco(text, kResults, iou);
  }
  task::KittiImage image{1};
  try_it([&] { image.truths = sources::parse_kitti_truths(text, "000001.txt"); });
  try_it([&] { image.detections = sources::parse_kitti_results(text, "000001.txt"); });
  task::KittiScore score;
  score.add(image);
  score.add({2, image.truths, {{task::KittiType::car, {100, 100, 200, 200}, 0.5}}});
  score.add({3, {{task::KittiType::car, {100, 100, 200, 200}}}, image.detections});
  for (const auto& one : score.figures())
    for (const auto& level : one.levels) check_share(level.mean41);
  return 0;
}
