// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/trust/class_rows.h"
#include "lockstep/trust/outliers.h"

namespace lockstep::trust {

// What the head of a network takes of training images: the file features.safetensors of a run folder. Other images are
// compared with them.
struct TrainingFeatures {
  std::string weights_sha256;
  int64_t width = 0;
  int64_t classes = 0;
  std::vector<float> features;     // [rows, width]
  std::vector<int64_t> labels;     // by row
  std::vector<std::string> names;  // by row, for people
  ClassGaussians gaussians;

  FeatureRows rows() const { return {width, features, labels, classes}; }
  static constexpr int64_t kNeighbour = 10;  // the one whose distance is the score
  double neighbour_score(std::span<const float> feature) const {
    return trust::neighbour_score(rows(), feature, kNeighbour);
  }
};

// At most this many training images are kept, evenly spread over all: 200 MB at 1,024 numbers each.
constexpr int64_t kMostFeatureRows = 50000;

// Of rows with features. `names`: by row.
TrainingFeatures make_training_features(const ClassRows& rows, std::vector<std::string> names,
                                        std::string weights_sha256);

base::Path features_file(const base::Path& run);
void write_features(const base::Path& run, const TrainingFeatures& features);  // atomic
// None where the run has none. User error: damaged, or of other weights.
std::optional<TrainingFeatures> read_features(const base::Path& run, const std::string& weights_sha256);

}  // namespace lockstep::trust
