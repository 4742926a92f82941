// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/kitti_scores.py and coco_scores.py.
//   kitti            cases on standard input: "case", then per image "image", "truth TYPE TRUNCATION OCCLUSION X1 Y1 X2
//   Y2"
//                    and "found TYPE X1 Y1 X2 Y2 SCORE"; a line a case: for each rule, class and level the number of
//                    truths, AP11, AP40 and the mean of 41
//   coco TRUTH RESULTS bbox|segm   the twelve figures, then three of each class
//   masks            lines "union|intersection|overlap|crowd A B" of compressed runs; the outcome of each
#include <cstdio>
#include <iostream>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/runs.h"
#include "lockstep/sources/coco_results.h"
#include "lockstep/task/kitti_score.h"

namespace {

using namespace lockstep;

void print_kitti(const task::KittiScore& score) {
  for (const auto rule : {task::KittiRule::devkit, task::KittiRule::kittibox})
    for (const auto& one : score.figures(rule))
      for (const auto& level : one.levels)
        std::printf("%lld %.17g %.17g %.17g ", static_cast<long long>(level.truths), level.ap11, level.ap40,
                    level.mean41);
  std::printf("\n");
}

// Images of even and odd numbers go to two collectors, the last first, which are then merged: any order, any ranks.
task::KittiScore collect(const std::vector<task::KittiImage>& images) {
  task::KittiScore even, odd;
  for (auto image = images.rbegin(); image != images.rend(); ++image) (image->id % 2 == 0 ? even : odd).add(*image);
  odd.merge(even.pack());
  return odd;
}

void score_kitti_cases() {
  std::vector<task::KittiImage> images;
  bool began = false;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what, type;
    words >> what;
    if (what == "case") {
      if (began) print_kitti(collect(images));
      began = true;
      images.clear();
    } else if (what == "image") {
      images.push_back({static_cast<int64_t>(images.size())});
    } else if (what == "truth") {
      auto& truth = images.back().truths.emplace_back();
      words >> type >> truth.truncation >> truth.occlusion;
      for (double& value : truth.box) words >> value;
      truth.type = task::kitti_type(type);
    } else {
      auto& found = images.back().detections.emplace_back();
      words >> type;
      for (double& value : found.box) words >> value;
      words >> found.score;
      found.type = task::kitti_type(type);
    }
  }
  if (began) print_kitti(collect(images));
}

void score_coco_files(const std::string& truth, const std::string& results, const std::string& iou) {
  const std::string list = base::read_file(truth, uint64_t{8} << 30),
                    found = base::read_file(results, uint64_t{8} << 30);
  const auto evaluation =
      sources::score_coco({list, truth}, {found, results}, iou == "segm" ? task::CocoIou::segm : task::CocoIou::bbox);
  for (const auto& figure : task::kCocoFigures) std::printf("%.17g\n", evaluation.figures.*figure.value);
  for (const auto& one : evaluation.figures.classes) std::printf("%.17g %.17g %.17g\n", one.ap, one.ap50, one.ap75);
}

void combine_masks() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what >> first >> second;
    const image::Runs a = image::parse_runs(first), b = image::parse_runs(second);
    if (what == "union") std::printf("%s\n", image::compress_runs(image::unite_runs(a, b)).c_str());
    if (what == "intersection") std::printf("%s\n", image::compress_runs(image::intersect_runs(a, b)).c_str());
    if (what == "overlap" || what == "crowd") std::printf("%.17g\n", image::runs_overlap(a, b, what == "crowd"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "kitti") score_kitti_cases();
    if (what == "masks") combine_masks();
    if (what == "coco" && argc == 5) score_coco_files(argv[2], argv[3], argv[4]);
  } catch (const base::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return error.exit_code();
  }
  return 0;
}
