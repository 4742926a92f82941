// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Of which class a sentence is: is it a caption? A sample is no image but its "txt" member. Fields "tokens"
// [text.slots]: its hashed n-grams (ngrams.h), kNoNgram behind them; "label", -1: no part. Rows: "logits", or
// "probabilities" of a prediction.
std::unique_ptr<Task> make_text(const spec::Job& job, std::vector<std::string> classes = {});

// The sentence as it is learnt from. User error where it is no UTF-8, or has no word.
std::string checked_sentence(std::span<const std::byte> bytes);

}  // namespace lockstep::task
