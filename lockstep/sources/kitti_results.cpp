// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/kitti_results.h"

#include <algorithm>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/kitti_label.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kTruthColumns = 15, kResultColumns = 16;

[[noreturn]] void refuse_columns(const KittiLine& line, const char* kind, size_t expected, const char* fix) {
  throw Error(Blame::user, text(line.where, ": ", line.values.size() + 1, " columns, a ", kind, " has ", expected),
              fix);
}

std::array<double, 4> box_of(const KittiLine& line) {
  return {line.values[3], line.values[4], line.values[5], line.values[6]};
}

// NNNNNN of each NNNNNN.txt, sorted.
std::set<std::string> numbered_files(const base::Path& folder, const char* what, const char* fix) {
  if (!std::filesystem::is_directory(folder))
    throw Error(Blame::user, text(folder.string(), ": there is no such folder of ", what), fix);
  std::set<std::string> names;
  for (const auto& path : base::list_folder(folder))
    if (path.extension() == ".txt") names.insert(path.stem().string());
  if (names.empty()) throw Error(Blame::user, text(folder.string(), ": no ", what, " (*.txt) are in it"), fix);
  return names;
}

std::string first_of(const std::vector<std::string>& names) {
  return text("\"", names.front(), ".txt\"", names.size() > 1 ? ", ..." : "");
}

}  // namespace

std::vector<task::KittiTruth> parse_kitti_truths(std::string_view content, const std::string& source) {
  std::vector<task::KittiTruth> all;
  for (const auto& line : read_kitti_lines(content, source)) {
    if (line.values.size() + 1 != kTruthColumns)
      refuse_columns(line, "label", kTruthColumns, "is this a label of KITTI's label_2? results go to --detections");
    const double occlusion = std::clamp(line.values[1], -1e9, 1e9);  // whatever a file says
    all.push_back({task::kitti_type(line.type), box_of(line), line.values[0], static_cast<int64_t>(occlusion)});
  }
  return all;
}

std::vector<task::KittiDetection> parse_kitti_results(std::string_view content, const std::string& source) {
  std::vector<task::KittiDetection> all;
  for (const auto& line : read_kitti_lines(content, source)) {
    if (line.values.size() + 1 == kTruthColumns)
      refuse_columns(line, "result", kResultColumns, "the score is missing: it stands in the last column");
    if (line.values.size() + 1 != kResultColumns)
      refuse_columns(
          line, "result", kResultColumns,
          "type, truncated, occluded, alpha, x1, y1, x2, y2, 3 dimensions, 3 of the location, rotation, score; "
          "-1 or -1000 for what is not known");
    all.push_back({task::kitti_type(line.type), box_of(line), line.values.back()});
  }
  return all;
}

KittiEvaluation score_kitti(const base::Path& labels, const base::Path& results) {
  const auto wanted = numbered_files(labels, "label files", "name the folder label_2 of KITTI's training set");
  auto given =
      numbered_files(results, "result files", "name the folder that holds NNNNNN.txt, an empty one for no detection");
  KittiEvaluation all;
  task::KittiScore score;
  std::vector<std::string> missing, extra;
  int64_t unscored = 0;
  for (const auto& name : wanted) {
    const base::Path label = labels / (name + ".txt"), result = results / (name + ".txt");
    task::KittiImage image{all.images++};
    image.truths = parse_kitti_truths(base::read_file(label), label.string());
    if (given.erase(name) > 0) {
      image.detections = parse_kitti_results(base::read_file(result), result.string());
    } else {
      missing.push_back(name);
    }
    all.truths += static_cast<int64_t>(image.truths.size());
    all.detections += static_cast<int64_t>(image.detections.size());
    unscored += std::count_if(image.detections.begin(), image.detections.end(),
                              [](const auto& detection) { return detection.type > task::KittiType::cyclist; });
    score.add(image);
  }
  extra.assign(given.begin(), given.end());
  all.devkit = score.figures(task::KittiRule::devkit);
  all.kittibox = score.figures(task::KittiRule::kittibox);
  if (!missing.empty())
    all.notes.push_back(text(missing.size(), " of ", wanted.size(), " labels have no result file (", first_of(missing),
                             "): they count as images without a detection; for a part of the set, give a folder of its "
                             "labels alone"));
  if (!extra.empty())
    all.notes.push_back(text(extra.size(), " result files have no label (", first_of(extra), "): passed over"));
  if (unscored > 0)
    all.notes.push_back(
        text(unscored, " detections are neither Car, Pedestrian nor Cyclist: KITTI scores no other type"));
  for (const auto& one : all.devkit)
    if (!one.is_detected)
      all.notes.push_back(text("nobody detects a ", one.name, ": KITTI's own program does not score the class"));
  return all;
}

}  // namespace lockstep::sources
