// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/sources/pack/shapes.h"

namespace lockstep::sources {

// What the captions of a drawn scene say of its objects, left to right: "a star, then a disk".
std::vector<std::string> scene_captions(const std::vector<std::string>& objects);

// FOLDER/sentences.csv, "sentence,label,split": captions of scenes as they could be drawn, two in five, and sentences
// about the same shapes that are none; a fifth of each for validation. No two say the same words.
struct SentencesRequest {
  base::Path folder;
  int64_t count = 2000;
  int64_t classes = 8;  // shapes, 2 to 8
  int64_t seed = 1;
  int64_t image_size = 0;  // sentences have no pixels
  int64_t threads = 0;
};

// As prepare_shapes: left alone when complete, the same bytes for the same request. User error where so few shapes make
// fewer sentences.
Dataset prepare_sentences(const SentencesRequest& request,
                          const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace lockstep::sources
