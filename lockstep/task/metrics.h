// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::task {

struct Mistake {
  int64_t sample_id = 0;
  int64_t target = 0;
  int64_t predicted = 0;
  double loss = 0;
  double confidence = 0;  // probability given to `predicted`

  bool operator==(const Mistake&) const = default;
};

struct ClassScore {
  int64_t samples = 0;   // with this target
  double precision = 0;  // 0 when the class was never predicted
  double recall = 0;     // 0 when there is no sample of it
  double f1 = 0;
};

struct Confusion {
  int64_t target = 0;
  int64_t predicted = 0;
  int64_t count = 0;

  bool operator==(const Confusion&) const = default;
};

// What a classifier got right and wrong. Sums are integers (losses in units of 2^-24), so that any order of adding and
// merging, hence any number of ranks, gives the same bits.
class Metrics {
 public:
  explicit Metrics(int64_t classes, int64_t worst = 24);

  // logits: [samples, classes], row-major. Ties go to the lower class, as argmax does. A row with a NaN names no class:
  // it is right for none.
  void add(std::span<const float> logits, std::span<const int64_t> targets, std::span<const int64_t> sample_ids);
  void merge(const Metrics& other);

  // The same length for the same (classes, worst), for an all-gather over ranks.
  std::vector<double> pack() const;
  static Metrics unpack(std::span<const double> packed);

  int64_t classes() const { return classes_; }
  int64_t samples() const;
  // Mean over the samples with a finite loss, each counted as 10,000 at most; NaN when there are samples, and none has.
  double loss() const;
  // For people: "0.1234"; "at least 5000.0000" where losses were cut; "not finite (of 7 samples)".
  std::string loss_text() const;
  double top1() const;
  double top5() const;
  int64_t nonfinite() const { return nonfinite_; }  // samples without a finite loss
  int64_t loss_cut() const { return loss_cut_; }    // samples whose loss was counted as less than it is
  int64_t confusion(int64_t target, int64_t predicted) const;
  ClassScore score(int64_t label) const;
  std::vector<Confusion> most_confused(size_t most) const;      // off the diagonal, most frequent first
  const std::vector<Mistake>& worst() const { return worst_; }  // the surest first

 private:
  void keep(const Mistake& mistake);

  int64_t classes_;
  int64_t keep_;
  int64_t loss_ = 0;  // in units of 2^-24
  int64_t nonfinite_ = 0;
  int64_t loss_cut_ = 0;
  int64_t top5_ = 0;
  std::vector<int64_t> confusion_;   // [target, predicted]
  std::vector<int64_t> unanswered_;  // [target], rows that named no class
  std::vector<Mistake> worst_;
};

// {"samples", "loss" (null: not finite), "top1", "top5", "nonfinite", "loss_cut" (when there are any), "classes":
// [{name, samples, precision, recall, f1}], "confusion": [[...]],
//  "most_confused": [{target, predicted, count}], "worst": [{sample, target, predicted, loss, confidence}]}
base::Json to_json(const Metrics& metrics, const std::vector<std::string>& class_names);

}  // namespace lockstep::task
