// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::task {

constexpr const char* kWordCounts = "words.csv";  // beside the shards of a part: "word,count", as prep counts them

// Words that stand for no word come first in every vocabulary.
constexpr int64_t kPadWord = 0, kStartWord = 1, kEndWord = 2, kUnknownWord = 3, kNumSpecialWords = 4;

// The classes of task caption: the four special words, and the words that stand `min_count` times or oftener in the
// training captions, the most frequent first. User error where prep has counted none, or none is so frequent.
std::vector<std::string> read_vocabulary(const base::Path& folder, int64_t min_count);

// Whether these classes are the words of task caption.
bool is_vocabulary(const std::vector<std::string>& classes);

// Of all words of a part's captions, as often as they stand there, those that are none of the vocabulary: a network is
// given kUnknownWord for each.
struct UnknownWords {
  int64_t all = 0, unknown = 0;
  std::vector<std::string> names = {};  // of the unknown ones, each once, the most frequent first

  bool operator==(const UnknownWords&) const = default;
};
// Zeros where prep has counted none.
UnknownWords find_unknown_words(const base::Path& folder, const std::vector<std::string>& vocabulary);

// Words and their numbers.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> words);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  int64_t number_of(const std::string& word) const;  // kUnknownWord where it is none
  const std::string& word(int64_t number) const { return words_[static_cast<size_t>(number)]; }

  // `out` words of a caption with its end behind it, cut to what fits, then padding. How many of them count.
  int64_t encode(const std::vector<std::string>& words, std::span<int64_t> out) const;
  // Up to the end, which is left out; `values` are numbers of words as a network's output keeps them.
  std::vector<std::string> decode(std::span<const float> values) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, int64_t> numbers_;
};

}  // namespace lockstep::task
