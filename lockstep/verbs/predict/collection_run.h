// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/loader/collection.h"
#include "lockstep/sources/image_columns.h"
#include "lockstep/training/trained.h"
#include "lockstep/verbs/predict/trusted.h"

namespace lockstep::verbs::predict {

struct CollectionOptions {
  base::Path to;          // results.jsonl
  bool pictures = false;  // overlays, thumbnails and the contact-sheet page
  bool again = false;     // give up what is there
  int64_t top = 5;
  at::Device device = at::kCPU;
  const TrustedAnswers* trusted = nullptr;  // as PredictOptions has them
  const std::vector<training::Trained>* ensemble = nullptr;
  const sources::ImageColumns* columns = nullptr;
  std::function<std::string()> stop = [] { return std::string(); };      // why to stop now; empty: go on
  std::optional<double> seconds_left = {};                               // known to rank 0
  std::function<void(int64_t done)> got_on = [](int64_t) {};             // records of this rank so far
  std::function<void(std::string_view)> show = [](std::string_view) {};  // of rank 0: the progress line
};

// All members are those of the whole collection, on every rank.
struct CollectionResult {
  int64_t images = 0;
  int64_t before = 0;       // done by earlier sessions
  int64_t predicted = 0;    // by this one
  int64_t failed = 0;       // images that could not be read; known when it is finished
  std::string stop_reason;  // empty: it is finished
  std::string model;

  bool finished() const { return stop_reason.empty(); }
  base::Json to_json() const;
};

// Predicts every image of the collection into one results file (docs/formats/predictions.md), each image once. Killed
// at any moment, the same call goes on: records are kept as they come, by rank, and put together at the end. What was
// done counts as long as the image's file and the model are the same. The file is there when all of it is. User error:
// records of another model, or of images elsewhere, in that file; another process that works on it.
CollectionResult predict_into(const training::Trained& trained, const loader::Collection& collection,
                              const CollectionOptions& options, comm::Group& group);

}  // namespace lockstep::verbs::predict
