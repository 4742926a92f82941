// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/image/image.h"
#include "lockstep/loader/loader.h"
#include "lockstep/task/task.h"
#include "lockstep/training/trained.h"
#include "lockstep/verbs/eval/trusted.h"

namespace lockstep::verbs::eval {

struct EvalOptions {
  std::string data = "validate";  // "validate", "test" or "train" of the job, or a folder with a sub-folder a class
  at::Device device = at::kCPU;
  std::function<void(int64_t done, int64_t all)> seen = {};  // samples of this rank
  TrustRequest trust = {};
};

// A sample that a person should look at.
struct ShownSample {
  std::string path;     // of its file
  std::string name;     // of it in the folder, or in what its shards were made of
  std::string picture;  // its file, wherever it lies; "" for synthetic samples
};

struct EvalResult {
  std::string data;  // the folder
  std::shared_ptr<const task::Score> score;
  std::vector<std::string> paths;              // of score->worst(), in its order
  std::vector<loader::BadSample> bad_samples;  // of all ranks
  double seconds = 0;
  std::vector<loader::BadSample> left_out = {};  // objects of samples that were used, likewise
  std::vector<std::string> pictures = {};        // the files of `paths`, wherever they lie; "" for synthetic samples
  std::vector<std::string> names = {};           // of `paths` in the folder, or in what its shards were made of
  std::string part = {};                         // "validate", "test", "train" of the job; empty: another folder
  base::Json trust = {};                 // how far to trust it (docs/trust.md); null: the task has no such figures
  std::vector<ShownSample> labels = {};  // of trust.labels.shown, in its order
  std::vector<ShownSample> leaked = {};  // of trust.leakage.shown, in its order
  std::vector<image::Image> heat = {};   // of `paths`, what the answers rest on; none: not asked for
  std::optional<trust::Calibration> calibration = {};    // to be kept with the run
  std::optional<trust::TrainingFeatures> features = {};  // likewise
  std::vector<std::string> notes = {};
};

// Every sample once over all ranks, none padded, in the job's precision; the same score on every rank, and on any
// number of ranks that compute with as many threads each.
EvalResult evaluate_trained(const training::Trained& trained, const EvalOptions& options, comm::Group& group);

// As eval.json: the score, and what was evaluated on what.
base::Json eval_json(const EvalResult& result, const training::Trained& trained);

// Writes trust.json and the features, where they were made. Machine error when that fails: they were asked for.
void save_trust(const EvalResult& result, const training::Trained& trained);
// Writes eval.json and small JPEGs of the worst mistakes into the run folder.
void save_evaluation(const EvalResult& result, const training::Trained& trained);

// For a terminal.
std::string eval_text(const EvalResult& result, const training::Trained& trained);

}  // namespace lockstep::verbs::eval
