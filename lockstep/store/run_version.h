// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/run/part_file.h"
#include "lockstep/store/trained_weights.h"
#include "lockstep/trust/calibration.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::store {

// The files of a version, made of a run: job.json, weights.safetensors, about.json (metrics, fingerprint of the data,
// licence), README.md (the model card), plan.json where the run was planned, and trust.json where these weights were
// calibrated. They follow from the run alone: the same run gives the same version.
class RunVersion {
 public:
  // `which` as find_weights has it. `licence`: of the weights, in the user's words; empty: not stated. User error when
  // it is no run folder or has no weights; machine error when its weights are damaged.
  RunVersion(const base::Path& run, const std::string& which, const std::string& licence);
  ~RunVersion();
  RunVersion(const RunVersion&) = delete;
  RunVersion& operator=(const RunVersion&) = delete;

  const TrainedWeights& source() const { return source_; }
  const base::Json& about() const { return about_; }
  std::vector<run::CheckpointPart> parts() const;  // valid as long as this lives

 private:
  struct Tensors;
  TrainedWeights source_;
  base::Json about_;
  std::optional<trust::Calibration> calibration_;  // of the file of weights that the version gets
  std::unique_ptr<Tensors> tensors_;
};

}  // namespace lockstep::store
