// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/spec/job.h"

namespace lockstep::task {

constexpr int64_t kNoNgram = 0;  // an empty slot; n-grams are 1 .. text.buckets

// The n-grams of a sentence, hashed: of each of its words (ptb_tokens.h) the word, the n-grams of words that end with
// it, then those of its characters, "<" and ">" around it, as fastText has them. Word by word: whoever cuts the list
// loses the end of the sentence. Empty for a sentence without a word.
std::vector<int64_t> hashed_ngrams(std::string_view sentence, const spec::Text& how);

}  // namespace lockstep::task
