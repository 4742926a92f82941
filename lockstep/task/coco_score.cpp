// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/coco_score.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/image/runs.h"

namespace lockstep::task {
namespace {

constexpr size_t kRanges = 4;  // all, small, medium, large
constexpr size_t kOverlaps = 10;
constexpr size_t kRecalls = 101;
constexpr size_t kMostDetections = 100;  // of a class in an image
// Both ends belong to a range: an area of 1024 is small and medium.
constexpr std::array<std::array<double, 2>, kRanges> kAreas = {{{0, 1e10}, {0, 1024}, {1024, 9216}, {9216, 1e10}}};

// As pycocotools' linspace has them, digit by digit: the ninth is 0.8999999999999999.
double overlap_at(size_t t) {
  return t + 1 == kOverlaps ? 0.95 : 0.5 + static_cast<double>(t) * ((0.95 - 0.5) / 9);
}

double recall_at(size_t r) {
  return static_cast<double>(r) * 0.01;
}

bool is_outside(double area, size_t range) {
  return area < kAreas[range][0] || area > kAreas[range][1];
}

double box_overlap(const std::array<double, 4>& a, const std::array<double, 4>& b, bool is_crowd) {
  const double width = std::min(a[2] + a[0], b[2] + b[0]) - std::max(a[0], b[0]);
  if (width <= 0) return 0;
  const double height = std::min(a[3] + a[1], b[3] + b[1]) - std::max(a[1], b[1]);
  if (height <= 0) return 0;
  const double common = width * height, area = a[2] * a[3];
  return common / (is_crowd ? area : area + b[2] * b[3] - common);
}

// A mask with what tells quickly that two of them cannot overlap enough for any threshold.
struct CocoMask {
  std::span<const int64_t> runs;
  int64_t area = 0;
  std::array<int64_t, 4> box = {};

  CocoMask(std::span<const int64_t> mask_runs, int64_t height)
      : runs(mask_runs), area(image::runs_area(runs)), box(image::runs_box(runs, height)) {}
};

double mask_overlap(const CocoMask& a, const CocoMask& b, bool is_crowd) {
  const int64_t width = std::min(a.box[0] + a.box[2], b.box[0] + b.box[2]) - std::max(a.box[0], b.box[0]);
  const int64_t height = std::min(a.box[1] + a.box[3], b.box[1] + b.box[3]) - std::max(a.box[1], b.box[1]);
  if (width <= 0 || height <= 0) return 0;
  const int64_t most = std::min({a.area, b.area, width * height});
  const int64_t least_of = is_crowd ? a.area : a.area + b.area - most;
  if (2 * most < least_of) return 0;  // below one half whatever the pixels are: no threshold would see it
  const int64_t common = image::intersection_area(a.runs, b.runs);
  if (common == 0) return 0;
  return static_cast<double>(common) / static_cast<double>(is_crowd ? a.area : a.area + b.area - common);
}

bool is_finite(const CocoDetection& detection) {
  return std::isfinite(detection.score) && std::isfinite(detection.area) &&
         std::all_of(detection.box.begin(), detection.box.end(), [](double value) { return std::isfinite(value); });
}

// numpy's sum (pairwise, in blocks of 128 with eight sums each), so that also the last digit is that of pycocotools.
double pairwise_sum(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 8) return std::accumulate(values.begin(), values.end(), 0.0);
  if (n > 128) {
    const size_t half = n / 2 - n / 2 % 8;
    return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
  }
  std::array<double, 8> r = {};
  std::copy_n(values.begin(), 8, r.begin());
  size_t i = 8;
  for (; i < n - n % 8; i += 8)
    for (size_t j = 0; j < 8; ++j) r[j] += values[i + j];
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; ++i) sum += values[i];
  return sum;
}

double mean_or_none(const std::vector<double>& values) {
  return values.empty() ? -1 : pairwise_sum(values) / static_cast<double>(values.size());
}

// Where no truth counts there is no curve.
struct Curve {
  bool is_there = false;
  std::array<double, kRecalls> precision = {};
  std::array<double, 3> recall = {};  // with 1, 10, 100 detections of a class in an image
};
constexpr std::array<int32_t, 3> kMostOf = {1, 10, 100};

}  // namespace

// One class in one image: detections by score, and all overlaps.
struct CocoScore::Matching {
  int64_t id;
  int64_t label;
  std::vector<const CocoTruth*> truths;
  std::vector<const CocoDetection*> detections;
  std::vector<double> overlaps = {};  // [detections, truths]

  void measure_boxes() {
    for (const auto* detection : detections)
      for (const auto* truth : truths) overlaps.push_back(box_overlap(detection->box, truth->box, truth->is_crowd));
  }

  void measure_masks(int64_t height) {
    std::vector<CocoMask> masks;
    if (detections.empty()) return;
    for (const auto* truth : truths) masks.emplace_back(truth->runs, height);
    for (const auto* detection : detections) {
      const CocoMask mask(detection->runs, height);
      for (size_t i = 0; i < truths.size(); ++i) overlaps.push_back(mask_overlap(mask, masks[i], truths[i]->is_crowd));
    }
  }

  // Sets the bits of one area range in the rows, which are as `detections`.
  void match(size_t range, std::span<Row> rows) const {
    std::vector<size_t> order;  // the ignored ones last
    const auto is_ignored = [&](size_t g) { return truths[g]->is_crowd || is_outside(truths[g]->area, range); };
    for (size_t g = 0; g < truths.size(); ++g)
      if (!is_ignored(g)) order.push_back(g);
    const size_t counting = order.size();
    for (size_t g = 0; g < truths.size(); ++g)
      if (is_ignored(g)) order.push_back(g);
    std::vector<bool> taken;
    for (size_t t = 0; t < kOverlaps; ++t) {
      const uint64_t bit = uint64_t{1} << (range * kOverlaps + t);
      taken.assign(truths.size(), false);
      for (size_t d = 0; d < detections.size(); ++d) {
        const size_t best = best_truth(d, std::min(overlap_at(t), 1 - 1e-10), order, counting, taken);
        if (best < order.size()) {
          taken[order[best]] = true;
          rows[d].matched |= bit;
          if (best >= counting) rows[d].ignored |= bit;
        } else if (is_outside(detections[d]->area, range)) {
          rows[d].ignored |= bit;
        }
      }
    }
  }

 private:
  // Its place in `order`, whose first `counting` are not ignored; behind the end: none. A crowd is matched any number
  // of times, and an ignored truth only where no other is.
  size_t best_truth(size_t detection, double least, const std::vector<size_t>& order, size_t counting,
                    const std::vector<bool>& taken) const {
    size_t best = order.size();
    for (size_t i = 0; i < order.size(); ++i) {
      if (i >= counting && best < counting) break;
      if (taken[order[i]] && !truths[order[i]]->is_crowd) continue;
      const double overlap = overlaps[detection * truths.size() + order[i]];
      if (overlap < least) continue;
      least = overlap;
      best = i;
    }
    return best;
  }
};

CocoScore::CocoScore(int64_t num_classes, CocoIou iou)
    : num_classes_(num_classes), iou_(iou), counts_(2 + kRanges * static_cast<size_t>(num_classes)) {}

void CocoScore::add(const CocoImage& image) {
  ++counts_[0];
  std::vector<Matching> found;  // one a class that is there, in no order
  std::vector<size_t> place(static_cast<size_t>(num_classes_), SIZE_MAX);
  const auto matching_of = [&](int64_t label) -> Matching& {
    base::ensure(label >= 0 && label < num_classes_, "a label of the classes that are scored");
    size_t& at = place[static_cast<size_t>(label)];
    if (at == SIZE_MAX) at = found.size(), found.push_back({image.id, label, {}, {}});
    return found[at];
  };
  for (const auto& truth : image.truths) matching_of(truth.label).truths.push_back(&truth);
  for (const auto& detection : image.detections) {
    if (is_finite(detection)) {
      matching_of(detection.label).detections.push_back(&detection);
    } else {
      ++counts_[1];
    }
  }
  for (auto& matching : found) {
    std::stable_sort(matching.detections.begin(), matching.detections.end(),
                     [](const auto* a, const auto* b) { return a->score > b->score; });
    if (matching.detections.size() > kMostDetections) matching.detections.resize(kMostDetections);
    if (iou_ == CocoIou::bbox) {
      matching.measure_boxes();
    } else {
      matching.measure_masks(image.height);
    }
    add_class(matching);
  }
}

void CocoScore::add_class(const Matching& matching) {
  std::vector<Row> rows;
  for (const auto* detection : matching.detections) {
    rows.push_back(
        {matching.id, detection->score, static_cast<int32_t>(matching.label), static_cast<int32_t>(rows.size()), 0, 0});
  }
  for (size_t range = 0; range < kRanges; ++range) {
    for (const auto* truth : matching.truths)
      truths(matching.label, range) += !truth->is_crowd && !is_outside(truth->area, range);
    matching.match(range, rows);
  }
  for (const Row& row : rows) rows_.add(row);
}

std::string CocoScore::pack() const {
  return std::string(reinterpret_cast<const char*>(counts_.data()), counts_.size() * sizeof(int64_t)) + rows_.pack();
}

void CocoScore::merge(std::string_view packed) {
  const size_t bytes = counts_.size() * sizeof(int64_t);
  base::ensure(packed.size() >= bytes, "ranks score the same classes");
  std::vector<int64_t> counts(counts_.size());
  std::memcpy(counts.data(), packed.data(), bytes);
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  rows_.merge(packed.substr(bytes));
}

namespace {

// The curve of one class, area range and overlap, from its detections by score: the precision at each recall is the
// best there or behind. Between two right ones precision only falls, so the right ones tell it all.
template <class Row>
Curve trace_curve(std::span<const Row> rows, size_t bit, int64_t truths, std::vector<double>& precisions) {
  Curve curve{.is_there = truths > 0};
  if (!curve.is_there) return curve;
  precisions.clear();
  std::array<int64_t, kMostOf.size()> right = {};
  int64_t wrong = 0;
  for (const Row& row : rows) {
    if ((row.ignored >> bit & 1) != 0) continue;
    if ((row.matched >> bit & 1) == 0) {
      ++wrong;
      continue;
    }
    for (size_t m = 0; m < kMostOf.size(); ++m) right[m] += row.rank < kMostOf[m];
    const auto tp = static_cast<double>(right.back());
    precisions.push_back(tp / (static_cast<double>(wrong) + tp + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precisions.size(); i-- > 1;) precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  const auto all = static_cast<double>(truths);
  size_t at = 0;  // of the right ones: recall (at + 1) / all
  for (size_t r = 0; r < kRecalls; ++r) {
    while (at < precisions.size() && static_cast<double>(at + 1) / all < recall_at(r)) ++at;
    if (at < precisions.size()) curve.precision[r] = precisions[at];
  }
  for (size_t m = 0; m < kMostOf.size(); ++m) curve.recall[m] = static_cast<double>(right[m]) / all;
  return curve;
}

// Curves of all classes, [range][overlap][label], and the means over them in the order in which pycocotools takes them.
class Curves {
 public:
  explicit Curves(int64_t classes) : classes_(static_cast<size_t>(classes)), all_(kRanges * kOverlaps * classes_) {}

  Curve& at(size_t range, size_t overlap, size_t label) {
    return all_[(range * kOverlaps + overlap) * classes_ + label];
  }

  double precision(size_t range, size_t from = 0, size_t to = kOverlaps) {
    std::vector<double> values;
    for (size_t t = from; t < to; ++t)
      for (size_t r = 0; r < kRecalls; ++r)
        for (size_t c = 0; c < classes_; ++c)
          if (at(range, t, c).is_there) values.push_back(at(range, t, c).precision[r]);
    return mean_or_none(values);
  }

  double class_precision(size_t label, size_t from = 0, size_t to = kOverlaps) {
    std::vector<double> values;
    for (size_t t = from; t < to; ++t) {
      const Curve& curve = at(0, t, label);
      if (curve.is_there) values.insert(values.end(), curve.precision.begin(), curve.precision.end());
    }
    return mean_or_none(values);
  }

  double recall(size_t range, size_t most) {
    std::vector<double> values;
    for (size_t t = 0; t < kOverlaps; ++t)
      for (size_t c = 0; c < classes_; ++c)
        if (at(range, t, c).is_there) values.push_back(at(range, t, c).recall[most]);
    return mean_or_none(values);
  }

 private:
  size_t classes_;
  std::vector<Curve> all_;
};

constexpr size_t kOverlap50 = 0, kOverlap75 = 5;

}  // namespace

CocoFigures CocoScore::figures() const {
  std::vector<Row> rows = rows_.as_added();
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.label != b.label) return a.label < b.label;
    if (a.score != b.score) return a.score > b.score;
    return a.id != b.id ? a.id < b.id : a.rank < b.rank;
  });
  Curves curves(num_classes_);
  std::vector<double> precisions;
  auto begin = rows.cbegin();
  for (int64_t label = 0; label < num_classes_; ++label) {
    const auto end = std::find_if(begin, rows.cend(), [&](const Row& row) { return row.label != label; });
    const auto of_label = std::span<const Row>(rows).subspan(static_cast<size_t>(begin - rows.cbegin()),
                                                             static_cast<size_t>(end - begin));
    for (size_t bit = 0; bit < kRanges * kOverlaps; ++bit) {
      const size_t range = bit / kOverlaps;
      const int64_t truths = counts_[2 + kRanges * static_cast<size_t>(label) + range];
      curves.at(range, bit % kOverlaps, static_cast<size_t>(label)) = trace_curve(of_label, bit, truths, precisions);
    }
    begin = end;
  }
  CocoFigures all;
  all.ap = curves.precision(0);
  all.ap50 = curves.precision(0, kOverlap50, kOverlap50 + 1);
  all.ap75 = curves.precision(0, kOverlap75, kOverlap75 + 1);
  all.ap_small = curves.precision(1);
  all.ap_medium = curves.precision(2);
  all.ap_large = curves.precision(3);
  all.ar1 = curves.recall(0, 0);
  all.ar10 = curves.recall(0, 1);
  all.ar100 = curves.recall(0, 2);
  all.ar_small = curves.recall(1, 2);
  all.ar_medium = curves.recall(2, 2);
  all.ar_large = curves.recall(3, 2);
  for (size_t label = 0; label < static_cast<size_t>(num_classes_); ++label) {
    all.classes.push_back({counts_[2 + kRanges * label], curves.class_precision(label),
                           curves.class_precision(label, kOverlap50, kOverlap50 + 1),
                           curves.class_precision(label, kOverlap75, kOverlap75 + 1)});
  }
  return all;
}

}  // namespace lockstep::task
