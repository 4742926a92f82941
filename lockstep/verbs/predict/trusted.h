// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/training/trained.h"
#include "lockstep/trust/calibration.h"
#include "lockstep/trust/training_features.h"

namespace lockstep::verbs::predict {

// What is asked of a prediction besides the answer.
struct TrustOptions {
  std::optional<double> coverage = {};  // a set of classes that holds the right one that often
  trust::SetMethod sets = trust::SetMethod::lac;
  std::optional<double> abstain = {};      // the share of wrong answers that is allowed
  std::optional<double> unusual = {};      // the share of known images that may be called unusual
  std::string score = "energy";            // by which an image is unusual
  int64_t nearest = 0;                     // training images that look most alike
  base::Path explain = {};                 // folder for heat maps; empty: none
  std::string heat = {};                   // which kind; empty: the one that fits the network
  std::vector<std::string> ensemble = {};  // further runs, RUN or RUN@WEIGHTS
};
// User error for values that mean nothing.
TrustOptions trust_options(const base::Arguments& arguments);

// What is known of a run, put to what its network says. Constant once made.
class TrustedAnswers {
 public:
  // User error where something is asked for that the run or its task has not. A calibration of other weights is one,
  // too; where nothing needs it there is a note, and the confidences are the network's own.
  TrustedAnswers(const training::Trained& trained, TrustOptions options);

  // Anything to do; otherwise records are as the task makes them.
  bool is_active() const { return calibration_ || options_.nearest > 0 || !options_.ensemble.empty(); }
  bool needs_features() const { return features_.has_value(); }
  const TrustOptions& options() const { return options_; }
  const std::string& note() const { return note_; }
  double temperature() const { return calibration_ ? calibration_->temperature : 1; }

  // Members of the record besides the answer: "set", "abstained", "unusual", "nearest".
  void add(base::Json& record, std::span<const float> logits, std::span<const float> feature) const;
  // The same as columns of a table.
  std::vector<std::string> columns() const;
  // What a record depends on, besides the network: keys of results::Terms.
  void add_terms(base::Json& keys) const;

 private:
  TrustOptions options_;
  std::vector<std::string> classes_;
  std::optional<trust::Calibration> calibration_;
  std::optional<trust::TrainingFeatures> features_;
  std::string note_;
  double least_confidence_ = 0;
  double unusual_below_ = 0;
};

// Those members for a terminal, with a blank in front of each; empty: there are none.
std::string trust_words(const base::Json& record);
// A member of a record as a cell, the parts of a list joined; empty where there is none.
std::string member_cell(const base::Json& record, const std::string& member, std::string_view between = "|");

}  // namespace lockstep::verbs::predict
