// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/loader/collection.h"
#include "lockstep/task/task.h"
#include "lockstep/training/trained.h"
#include "lockstep/trust/calibration.h"
#include "lockstep/trust/class_rows.h"
#include "lockstep/trust/training_features.h"

namespace lockstep::verbs::eval {

// What is asked of an evaluation besides its score.
struct TrustRequest {
  bool calibrate = false;  // fit temperature and thresholds on a part of the rows, and keep them with the run
  bool features = false;   // keep what the head takes of the training images
  bool leakage = false;    // look for evaluated images among the training images
  bool explain = false;    // heat maps of the worst mistakes
  std::string by = {};     // a column of the samples' .json: figures for each of its values

  bool any() const { return calibrate || features || leakage || explain || !by.empty(); }
};

// User error where the run has no classes of whole images, or the data cannot serve.
void check_request(const TrustRequest& request, const training::Trained& trained, const std::string& part);

// A batch of an evaluation, into the rows: of each `step` samples one.
void keep_rows(const task::Rows& batch, trust::ClassRows& rows, int64_t step = 1);
// Those of all ranks, in the order of the samples, on every rank.
void gather_rows(trust::ClassRows& rows, comm::Group& group);

// The text of each sample's column, in the order of `ids`. User error that names the columns there are.
std::vector<std::string> column_values(const loader::Collection& collection, const std::vector<int64_t>& ids,
                                       const std::string& column);

// Evaluated images that are among the training images too, as the same file or as nearly the same picture: {"samples",
// "exact", "near", "top1", "top1_without", "shown": [{"sample", "training", "bits"}]}.
base::Json find_leakage(const trust::ClassRows& rows, const loader::Collection& evaluated,
                        const loader::Collection& training);

struct TrustResult {
  base::Json figures;                             // member "trust" of eval.json; null: none
  std::optional<trust::Calibration> calibration;  // to be kept: it was asked for
  std::vector<std::string> notes;
};

// Everything that follows from the rows. `training`: features of the training images, where they are known.
TrustResult find_trust(const trust::ClassRows& rows, const training::Trained& trained,
                       const loader::Collection& collection, const TrustRequest& request,
                       const std::optional<trust::TrainingFeatures>& training);

// For a terminal; empty for null.
std::string trust_words(const base::Json& figures);

}  // namespace lockstep::verbs::eval
