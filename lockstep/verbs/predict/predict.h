// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/loader/collection.h"
#include "lockstep/model/trained.h"

namespace lockstep::verbs::predict {

struct Guess {
  int64_t label = 0;
  double probability = 0;

  bool operator==(const Guess&) const = default;
};

struct Prediction {
  std::string path;
  std::vector<Guess> guesses;  // most probable first; empty when the image could not be read
  std::string error;           // why it could not be read
};

// The images behind the arguments: a file as it is, a folder with all .jpg, .jpeg and .png below it, sorted.
// User error for a path that does not exist and for a folder without an image.
std::vector<std::string> images_of(const std::vector<std::string>& paths);

// The same as a collection without classes; a folder of shards, given alone, with all its pictures.
loader::Collection pictures_of(const std::vector<std::string>& paths);

struct PredictOptions {
  int64_t top = 5;
  at::Device device = at::kCPU;
  std::function<void(const Prediction&)> each = {};  // told in order, as soon as it is known
  std::function<void()> got_on = {};                 // after each batch of this rank
};

// One prediction per image, in order; an image that cannot be read has its reason instead.
std::vector<Prediction> predict_images(const model::Trained& trained, const std::vector<std::string>& images,
                                       const PredictOptions& options);

// Over the ranks of `group`, each with whole batches; every rank gets all predictions, rank 0 tells them.
std::vector<Prediction> predict_pictures(const model::Trained& trained, const loader::Collection& pictures,
                                         const PredictOptions& options, comm::Group& group);

// {"images": [{"path", "classes": [{"name", "probability"}]} or {"path", "error"}], "failed": 0}
base::Json predict_json(const std::vector<Prediction>& predictions, const model::Trained& trained);

// One line for a terminal: path, then the classes with their probabilities.
std::string predict_line(const Prediction& prediction, const model::Trained& trained);

}  // namespace lockstep::verbs::predict
