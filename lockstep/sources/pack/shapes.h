// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::sources {

// A drawn dataset: FOLDER/train/<class>/NNNNN.jpg, FOLDER/validate/..., a contact sheet, and dataset.json written last.
struct ShapesRequest {
  base::Path folder;
  int64_t count = 4000;
  int64_t classes = 10;
  int64_t seed = 1;
  int64_t image_size = 96;
  int64_t threads = 0;  // 0: the cores of this process
};

struct Dataset {
  base::Path folder;
  std::vector<std::string> classes;
  int64_t num_train = 0;
  int64_t num_validate = 0;
  std::string fingerprint = {};  // SHA-256 over the SHA-256 of every image, in order
  bool was_complete = false;     // nothing had to be done
  double seconds = 0;

  base::Json to_json() const;
};

// Makes the dataset, or what is missing of it: an interrupted one is completed, a complete one is left alone. The same
// bytes on any number of threads. Every file appears whole under its name or not at all.
// User error: impossible numbers; a folder that holds something else, or a dataset of other numbers. Machine error: the
// folder cannot be written, the disk is full.
Dataset prepare_shapes(const ShapesRequest& request, const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace lockstep::sources
