// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/ngrams.h"

#include <algorithm>
#include <string>

#include "lockstep/base/text.h"
#include "lockstep/task/ptb_tokens.h"

namespace lockstep::task {
namespace {

enum class Kind : char { words = 'w', characters = 'c' };  // "cat" the word is another n-gram than "cat" in "<cat>"

// FNV-1a, whose low bits are mixed once more (MurmurHash3's finalizer): buckets are often a power of two.
uint64_t hash_of(Kind kind, std::string_view bytes) {
  uint64_t hash = 14695981039346656037U;
  const auto add = [&hash](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U; };
  add(static_cast<char>(kind));
  for (const char c : bytes) add(c);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdU;
  return hash ^ (hash >> 33);
}

// Where each character of the word begins, and where the last one ends.
std::vector<size_t> character_starts(std::string_view word) {
  std::vector<size_t> starts;
  for (size_t at = 0; at < word.size(); at += std::max<size_t>(1, base::utf8_length(word, at))) starts.push_back(at);
  starts.push_back(word.size());
  return starts;
}

}  // namespace

std::vector<int64_t> hashed_ngrams(std::string_view sentence, const spec::Text& how) {
  std::vector<int64_t> all;
  const auto add = [&](Kind kind, std::string_view ngram) {
    all.push_back(1 + static_cast<int64_t>(hash_of(kind, ngram) % static_cast<uint64_t>(how.buckets)));
  };
  const std::vector<std::string> words = ptb_tokens(sentence);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string several = words[i];
    add(Kind::words, several);
    for (size_t n = 1; n < static_cast<size_t>(how.words) && n <= i; ++n) {
      several = base::text(words[i - n], " ", several);
      add(Kind::words, several);
    }
    const std::string bounded = base::text("<", words[i], ">");
    const std::vector<size_t> starts = character_starts(bounded);
    for (auto n = static_cast<size_t>(how.shortest); n <= static_cast<size_t>(how.longest); ++n) {
      for (size_t from = 0; from + n < starts.size(); ++from) {
        add(Kind::characters, std::string_view(bounded).substr(starts[from], starts[from + n] - starts[from]));
      }
    }
  }
  return all;
}

}  // namespace lockstep::task
