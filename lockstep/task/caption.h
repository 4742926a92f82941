// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// A sentence for an image. Its classes are the words of the training captions (vocabulary.h). Fields "image", "tokens"
// [length]: the words of one caption and its end, then padding; "length" []: how many of them count, 0: no caption.
// While training one of a sample's captions is drawn; otherwise the first counts for the loss, all for the score.
// Rows: "words" [length], "log_probabilities" [length], "attention" [length, places] of the caption that was found, and
// "given" [length], log probabilities of the field's words.
std::unique_ptr<Task> make_caption(const spec::Job& job, std::vector<std::string> classes = {});

// How many places the network looks at: [rows, columns] of an image of this size.
spec::ImageSize caption_places(const spec::ImageSize& image_size);

}  // namespace lockstep::task
