// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/kitti_score.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace lockstep::task {
namespace {

constexpr size_t kPoints = 41;  // of recall: 0, 1/40, ..., 1

struct KittiClassRule {
  const char* name;
  KittiType type;
  KittiType neighbour;  // found without counting; `other`: it has none
  double least_overlap;
};
constexpr std::array<KittiClassRule, 3> kKittiClasses = {{
    {"Car", KittiType::car, KittiType::van, 0.7},
    {"Pedestrian", KittiType::pedestrian, KittiType::person_sitting, 0.5},
    {"Cyclist", KittiType::cyclist, KittiType::other, 0.5},
}};

struct KittiLimits {
  int least_height;
  int64_t most_occlusion;
  double most_truncation;
};
constexpr std::array<KittiLimits, 3> kKittiLimits = {{{40, 0, 0.15}, {25, 1, 0.30}, {25, 2, 0.50}}};

// counts; ignored: may meet without counting as anything; no_part: as if it were not there.
enum class State : uint8_t { counts, ignored, no_part };

double kitti_area(const std::array<double, 4>& box) {
  return (box[2] - box[0]) * (box[3] - box[1]);
}

double kitti_intersection(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  return width > 0 && height > 0 ? width * height : 0;
}

double kitti_overlap(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  const double common = kitti_intersection(a, b);
  return common > 0 ? common / (kitti_area(a) + kitti_area(b) - common) : 0;
}

State truth_state(const KittiTruth& truth, const KittiClassRule& rule, const KittiLimits& limits) {
  if (truth.type == KittiType::other) return State::no_part;  // before the neighbour, which may be none
  if (truth.type == rule.neighbour) return State::ignored;
  if (truth.type != rule.type) return State::no_part;
  const bool beyond = truth.box[3] - truth.box[1] < limits.least_height || truth.occlusion > limits.most_occlusion ||
                      truth.truncation > limits.most_truncation;
  return beyond ? State::ignored : State::counts;
}

// A low one is ignored whatever its class, and its height is cut to a whole number: so KITTI's program has it.
State detection_state(const KittiDetection& detection, const KittiClassRule& rule, const KittiLimits& limits,
                      KittiRule low) {
  const double height = std::trunc(std::abs(detection.box[3] - detection.box[1]));
  if (low == KittiRule::devkit && height < limits.least_height) return State::ignored;
  return detection.type == rule.type ? State::counts : State::no_part;
}

// An image as one class sees it at one level: only what may take part.
struct SeenImage {
  struct Candidate {
    size_t detection = 0;  // in detections
    double overlap = 0;
  };
  struct SeenTruth {
    bool counts = false;
    std::vector<Candidate> candidates = {};  // that overlap enough, in the order of the file
  };
  struct SeenDetection {
    double score = 0;
    bool counts = false;
    bool is_excused = false;  // lies in a region that nobody labelled
  };
  std::vector<SeenTruth> truths = {};
  std::vector<SeenDetection> detections = {};
};

SeenImage see(const KittiImage& image, const KittiClassRule& rule, const KittiLimits& limits, KittiRule low) {
  SeenImage seen;
  std::vector<const KittiDetection*> taken;
  for (const auto& detection : image.detections) {
    const State state = detection_state(detection, rule, limits, low);
    if (state == State::no_part) continue;
    const bool is_excused = std::any_of(image.truths.begin(), image.truths.end(), [&](const KittiTruth& truth) {
      return truth.type == KittiType::dont_care &&
             kitti_intersection(detection.box, truth.box) / kitti_area(detection.box) > rule.least_overlap;
    });
    seen.detections.push_back({detection.score, state == State::counts, is_excused});
    taken.push_back(&detection);
  }
  for (const auto& truth : image.truths) {
    const State state = truth_state(truth, rule, limits);
    if (state == State::no_part) continue;
    SeenImage::SeenTruth& one = seen.truths.emplace_back(SeenImage::SeenTruth{state == State::counts});
    for (size_t i = 0; i < taken.size(); ++i) {
      const double overlap = kitti_overlap(taken[i]->box, truth.box);
      if (overlap > rule.least_overlap) one.candidates.push_back({i, overlap});
    }
  }
  return seen;
}

// The first pass: each truth in the order of the file takes the candidate of the highest score, the first of equals.
void add_true_scores(const SeenImage& image, std::vector<double>& scores) {
  std::vector<bool> assigned(image.detections.size());
  for (const auto& truth : image.truths) {
    const SeenImage::Candidate* best = nullptr;
    for (const auto& candidate : truth.candidates) {
      if (assigned[candidate.detection]) continue;
      if (!best || image.detections[candidate.detection].score > image.detections[best->detection].score)
        best = &candidate;
    }
    if (!best) continue;
    assigned[best->detection] = true;
    const auto& detection = image.detections[best->detection];
    if (truth.counts && detection.counts) scores.push_back(detection.score);
  }
}

struct KittiCounts {
  int64_t right = 0;
  int64_t wrong = 0;
};

// The second pass, among those that score the threshold or more: the candidate of the greatest overlap; one that is
// ignored only while there is no other.
void add_counts(const SeenImage& image, double threshold, std::vector<bool>& assigned, KittiCounts& counts) {
  assigned.assign(image.detections.size(), false);
  for (const auto& truth : image.truths) {
    const SeenImage::Candidate* best = nullptr;
    for (const auto& candidate : truth.candidates) {
      const auto& detection = image.detections[candidate.detection];
      if (assigned[candidate.detection] || detection.score < threshold) continue;
      const bool holds_other = best && image.detections[best->detection].counts;
      if (detection.counts ? !holds_other || candidate.overlap > best->overlap : !best) best = &candidate;
    }
    if (!best) continue;
    assigned[best->detection] = true;
    counts.right += truth.counts && image.detections[best->detection].counts;
  }
  for (size_t i = 0; i < image.detections.size(); ++i) {
    const auto& detection = image.detections[i];
    counts.wrong += detection.counts && !assigned[i] && !detection.is_excused && detection.score >= threshold;
  }
}

// The scores at which recall comes nearest to 0, 1/40, 2/40, ...
std::vector<double> choose_thresholds(std::vector<double> scores, int64_t truths) {
  std::sort(scores.begin(), scores.end(), std::greater<>());
  std::vector<double> chosen;
  double recall = 0;
  for (size_t i = 0; i < scores.size() && chosen.size() < kPoints; ++i) {
    const bool is_last = i + 1 == scores.size();
    const double left = static_cast<double>(i + 1) / static_cast<double>(truths);
    const double right = is_last ? left : static_cast<double>(i + 2) / static_cast<double>(truths);
    if (right - recall < recall - left && !is_last) continue;
    chosen.push_back(scores[i]);
    recall += 1.0 / (kPoints - 1.0);
  }
  return chosen;
}

KittiLevel score_level(const std::vector<SeenImage>& images) {
  KittiLevel level;
  std::vector<double> scores;
  for (const auto& image : images) {
    level.truths += std::count_if(image.truths.begin(), image.truths.end(), [](const auto& t) { return t.counts; });
    add_true_scores(image, scores);
  }
  std::array<double, kPoints> precision = {};
  std::vector<bool> assigned;
  const std::vector<double> thresholds = choose_thresholds(std::move(scores), level.truths);
  for (size_t k = 0; k < thresholds.size(); ++k) {
    KittiCounts counts;
    for (const auto& image : images) add_counts(image, thresholds[k], assigned, counts);
    const auto all = static_cast<double>(counts.right + counts.wrong);
    precision[k] = all > 0 ? static_cast<double>(counts.right) / all : 0;
  }
  for (size_t k = kPoints - 1; k-- > 0;) precision[k] = std::max(precision[k], precision[k + 1]);
  for (size_t k = 0; k < kPoints; k += 4) level.ap11 += precision[k] / 11;
  level.ap40 = std::accumulate(precision.begin() + 1, precision.end(), 0.0) / 40;
  level.mean41 = std::accumulate(precision.begin(), precision.end(), 0.0) / 41;
  return level;
}

bool has_finite_numbers(const KittiDetection& detection) {
  return std::isfinite(detection.score) &&
         std::all_of(detection.box.begin(), detection.box.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

KittiType kitti_type(std::string_view name) {
  static constexpr std::array<std::string_view, 6> names = {"car", "pedestrian",     "cyclist",
                                                            "van", "person_sitting", "dontcare"};  // as KittiType
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view known) {
    return std::equal(name.begin(), name.end(), known.begin(), known.end(),
                      [&](char a, char b) { return lower(a) == b; });
  });
  return static_cast<KittiType>(found - names.begin());
}

void KittiScore::add(const KittiImage& image) {
  rows_.add({image.id, Kind::image, KittiType::other, {}, 0, 0});
  for (const auto& truth : image.truths)
    rows_.add({image.id, Kind::truth, truth.type, truth.box, truth.truncation, truth.occlusion});
  for (const auto& detection : image.detections) {
    const Kind kind = has_finite_numbers(detection) ? Kind::detection : Kind::nonfinite;
    rows_.add({image.id, kind, detection.type, detection.box, detection.score, 0});
  }
}

int64_t KittiScore::count(Kind kind) const {
  const auto& all = rows_.as_added();
  return std::count_if(all.begin(), all.end(), [&](const Row& row) { return row.kind == kind; });
}

int64_t KittiScore::images() const {
  return count(Kind::image);
}

int64_t KittiScore::nonfinite() const {
  return count(Kind::nonfinite);
}

std::array<KittiClass, 3> KittiScore::figures(KittiRule rule) const {
  std::vector<KittiImage> images;
  for (const Row& row : rows_.in_order()) {
    if (row.kind == Kind::image) images.push_back({row.id});
    if (row.kind == Kind::truth) images.back().truths.push_back({row.type, row.box, row.value, row.occlusion});
    if (row.kind == Kind::detection) images.back().detections.push_back({row.type, row.box, row.value});
  }
  std::array<KittiClass, 3> figures;
  for (size_t c = 0; c < kKittiClasses.size(); ++c) {
    const KittiClassRule& class_rule = kKittiClasses[c];
    figures[c].name = class_rule.name;
    for (size_t l = 0; l < kKittiLimits.size(); ++l) {
      std::vector<SeenImage> seen;
      seen.reserve(images.size());
      for (const auto& image : images) seen.push_back(see(image, class_rule, kKittiLimits[l], rule));
      figures[c].levels[l] = score_level(seen);
    }
    figures[c].is_detected = std::any_of(images.begin(), images.end(), [&](const KittiImage& image) {
      return std::any_of(image.detections.begin(), image.detections.end(),
                         [&](const KittiDetection& detection) { return detection.type == class_rule.type; });
    });
  }
  return figures;
}

}  // namespace lockstep::task
