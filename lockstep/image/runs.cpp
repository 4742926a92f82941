// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/runs.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/image/mask.h"

namespace lockstep::image {
namespace {

// Makes runs of stretches as they come: those of one kind become one, those of no length none.
class RunsMaker {
 public:
  void add(bool inside, int64_t length) {
    if (length == 0) return;
    if (inside != inside_) runs_.push_back(0), inside_ = inside;
    runs_.back() += length;
  }
  Runs take() { return std::move(runs_); }

 private:
  Runs runs_{0};
  bool inside_ = false;
};

// Walks two masks together: calls visit(inside a, inside b, length) for each stretch in which neither changes.
template <class Visit>
void walk_together(std::span<const int64_t> a, std::span<const int64_t> b, const Visit& visit) {
  size_t at_a = 0, at_b = 0;
  int64_t left_a = a.empty() ? 0 : a[0], left_b = b.empty() ? 0 : b[0];
  while (at_a < a.size() && at_b < b.size()) {
    const int64_t length = std::min(left_a, left_b);
    visit(at_a % 2 == 1, at_b % 2 == 1, length);
    left_a -= length;
    left_b -= length;
    if (left_a == 0 && ++at_a < a.size()) left_a = a[at_a];
    if (left_b == 0 && ++at_b < b.size()) left_b = b[at_b];
  }
}

Runs runs_of(const Switches& switches, int64_t pixels) {
  RunsMaker maker;
  int64_t at = 0;
  for (size_t i = 0; i < switches.size(); ++i) {
    maker.add(i % 2 == 1, switches[i] - at);
    at = switches[i];
  }
  maker.add(switches.size() % 2 == 1, pixels - at);
  return maker.take();
}

}  // namespace

Runs read_segmentation(const base::Json& segmentation, int64_t width, int64_t height) {
  Runs all{width * height};
  bool is_first = true;
  for (const Switches& part : outline_switches(segmentation, width, height)) {
    Runs runs = runs_of(part, width * height);
    all = is_first ? std::move(runs) : unite_runs(all, runs);
    is_first = false;
  }
  return all;
}

std::string read_compressed(const base::Json& segmentation, int64_t width, int64_t height) {
  const base::Json* counts = segmentation.is_object() ? segmentation.find("counts") : nullptr;
  if (!counts || !counts->is_string()) return compress_runs(read_segmentation(segmentation, width, height));
  outline_switches(segmentation, width, height);
  return counts->as_string();
}

int64_t runs_area(std::span<const int64_t> runs) {
  int64_t area = 0;
  for (size_t i = 1; i < runs.size(); i += 2) area += runs[i];
  return area;
}

std::array<int64_t, 4> runs_box(std::span<const int64_t> runs, int64_t height) {
  int64_t at = 0, left = -1, right = 0, top = height, bottom = 0;  // the last pixel's column and row are inside
  for (size_t i = 0; i < runs.size(); ++i) {
    const int64_t first = at, last = at + runs[i] - 1;
    at += runs[i];
    if (i % 2 == 0 || runs[i] == 0) continue;
    const int64_t column = first / height, begin = column * height;
    if (left < 0) left = column;
    const bool spans_columns = last >= begin + height;  // hence a last row, and a first one
    right = spans_columns ? last / height : column;
    top = std::min(top, spans_columns ? 0 : first - begin);
    bottom = std::max(bottom, spans_columns ? height - 1 : last - begin);
  }
  if (left < 0) return {};
  return {left, top, right - left + 1, bottom - top + 1};
}

Runs unite_runs(std::span<const int64_t> a, std::span<const int64_t> b) {
  RunsMaker maker;
  walk_together(a, b, [&](bool in_a, bool in_b, int64_t length) { maker.add(in_a || in_b, length); });
  return maker.take();
}

Runs intersect_runs(std::span<const int64_t> a, std::span<const int64_t> b) {
  RunsMaker maker;
  walk_together(a, b, [&](bool in_a, bool in_b, int64_t length) { maker.add(in_a && in_b, length); });
  return maker.take();
}

int64_t intersection_area(std::span<const int64_t> a, std::span<const int64_t> b) {
  int64_t area = 0;
  walk_together(a, b, [&](bool in_a, bool in_b, int64_t length) { area += in_a && in_b ? length : 0; });
  return area;
}

double runs_overlap(std::span<const int64_t> a, std::span<const int64_t> b, bool is_crowd) {
  const int64_t common = intersection_area(a, b);
  if (common == 0) return 0;
  const int64_t of = is_crowd ? runs_area(a) : runs_area(a) + runs_area(b) - common;
  return static_cast<double>(common) / static_cast<double>(of);
}

}  // namespace lockstep::image
