// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trust {

// What a classifier gave for samples whose class is known, as plain numbers.
struct ClassRows {
  int64_t classes = 0;
  std::vector<float> logits = {};  // [rows, classes]: numbers whose softmax is the probabilities
  std::vector<int64_t> labels = {};
  std::vector<int64_t> ids = {};  // of the samples
  int64_t width = 0;              // of a row of features; 0: none are kept
  std::vector<float> features = {};
  int64_t nonfinite = 0;  // rows that were left out: a NaN or an infinity is no probability

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  std::span<const float> row(int64_t i) const {
    return std::span(logits).subspan(static_cast<size_t>(i * classes), static_cast<size_t>(classes));
  }
  std::span<const float> feature(int64_t i) const {
    return std::span(features).subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
  // A row without a label (< 0) has no part in anything.
  void add(std::span<const float> row, int64_t label, int64_t id, std::span<const float> feature = {});
  ClassRows select(std::span<const int64_t> rows) const;

  // All of it, for another rank's merge(); sort() makes the order that of the samples, whatever ranks had them.
  std::string pack() const;
  void merge(std::string_view packed);
  void sort();
};

// The probabilities softmax(logits / temperature), in double precision.
std::vector<double> softmax(std::span<const float> logits, double temperature = 1);

// The most probable class; of equal ones the lower.
int64_t top_class(std::span<const double> probabilities);

// For each row: what the network said of it.
struct Answer {
  int64_t said = 0;
  double confidence = 0;  // probability of `said`
  bool right = false;
};
std::vector<Answer> answers(const ClassRows& rows, double temperature = 1);

}  // namespace lockstep::trust
