// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Pixels by label and answer, of a whole dataset: every figure follows from these counts, whatever ranks counted them.
// Pixels without a label have no part.
class PixelCounts {
 public:
  explicit PixelCounts(int64_t labels) : labels_(labels), counts_(static_cast<size_t>(labels * labels)) {}

  void add(int64_t label, int64_t answer) { ++counts_[static_cast<size_t>(label * labels_ + answer)]; }
  void add(std::span<const int64_t> counts);  // of another, in this order
  std::span<const int64_t> all() const { return counts_; }

  int64_t labels() const { return labels_; }
  int64_t count(int64_t label, int64_t answer) const { return counts_[static_cast<size_t>(label * labels_ + answer)]; }
  int64_t of_label(int64_t label) const;
  int64_t of_answer(int64_t answer) const;
  int64_t pixels() const;
  double accuracy() const;
  // Those of both over those of either; none: neither labelled nor answered anywhere.
  std::optional<double> iou(int64_t label) const;
  double mean_iou() const;  // over the labels that have one
  // What the label that most pixels have would reach as the answer to all of them.
  double constant_accuracy() const;
  double constant_mean_iou() const;

 private:
  int64_t labels_;
  std::vector<int64_t> counts_;
};

// `record`: what is shown of a sample among the worst.
using RecordOf = std::function<base::Json(const Rows& rows, int64_t i)>;
std::unique_ptr<Score> make_segment_score(std::vector<std::string> names, int64_t worst, RecordOf record);

// The answer to each pixel of row `i`: the likeliest label, the first of equals.
std::vector<uint8_t> pixel_answers(const Rows& rows, int64_t i, int64_t labels);

}  // namespace lockstep::task
