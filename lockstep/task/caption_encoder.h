// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/task/task.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::task {

std::vector<Field> caption_fields(const spec::Job& job);

// The whole image, stretched to data.image_size, so that places of the network are places of the image; while training
// a random crop. User error for a sample without a caption that has a word.
std::unique_ptr<Encoder> make_caption_encoder(const spec::Job& job, std::shared_ptr<const Vocabulary> words);

}  // namespace lockstep::task
