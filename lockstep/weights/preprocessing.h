// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::weights {

// How images must be shown to weights: as they were trained. It belongs to the weights, and travels in the metadata of
// their file: "image_size", "mean", "std" and "center_crop", each as JSON in the words of the job's section data.
struct Preprocessing {
  base::Json image_size;  // a side, or [height, width]
  std::vector<double> mean, std;
  double center_crop = 0.875;

  bool operator==(const Preprocessing&) const = default;
};

Preprocessing preprocessing_of(const spec::Data& data);

// Adds it to what a file of weights says of itself.
void add_to(TensorMetadata& metadata, const Preprocessing& preprocessing);

// From a safetensors file, or from the weights in the folder of a checkpoint. None where the file is of another kind,
// is not there, or says nothing. User error when what it says cannot be read.
std::optional<Preprocessing> read_preprocessing(const base::Path& path);

// The same scale with nothing cropped away: 224 pixels of 87.5 % of the short side become 256 of all of it.
Preprocessing whole_image(Preprocessing preprocessing);

// Puts into the job document (overrides applied) what it leaves unsaid of "data", and returns a warning for each key of
// it that says otherwise than the weights.
std::vector<std::string> add_to(base::Json& job, const Preprocessing& preprocessing, const std::string& source);

}  // namespace lockstep::weights
