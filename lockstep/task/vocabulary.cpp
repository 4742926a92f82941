// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/vocabulary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::task {

using base::Blame;
using base::Error;
using base::text;

namespace {

constexpr uint64_t kMostListBytes = uint64_t{1} << 30;
constexpr std::array<std::string_view, kNumSpecialWords> kSpecialWords{"<pad>", "<start>", "<end>", "<unk>"};

struct CountedWord {
  std::string word;
  int64_t count = 0;
};

CountedWord read_line(const std::string& line, const std::string& where) {
  const size_t comma = line.rfind(',');
  CountedWord one;
  if (comma != std::string::npos) {
    const auto parsed = std::from_chars(line.data() + comma + 1, line.data() + line.size(), one.count);
    if (parsed.ec == std::errc() && parsed.ptr == line.data() + line.size() && comma > 0) {
      one.word = line.substr(0, comma);
      return one;
    }
  }
  throw Error(Blame::user, text(where, ": a word and its count are expected, not ", base::quote_json(line)),
              "prepare the captions again: lockstep prep");
}

std::vector<CountedWord> read_counts(const base::Path& path) {
  std::vector<CountedWord> words;
  int64_t number = 0;
  for (const std::string& line : base::split(base::read_file(path, kMostListBytes), '\n')) {
    if (++number == 1 || line.empty()) continue;  // the first one names the columns
    words.push_back(read_line(line, text(path.string(), ":", number)));
  }
  return words;
}

}  // namespace

std::vector<std::string> read_vocabulary(const base::Path& folder, int64_t min_count) {
  const base::Path path = folder / kWordCounts;
  if (!std::filesystem::exists(path)) {
    throw Error(Blame::user, text(folder.string(), ": no words were counted in it (", kWordCounts, ")"),
                "task caption learns from shards of images with captions: lockstep prep captions.json --to DIR");
  }
  std::vector<std::string> words(kSpecialWords.begin(), kSpecialWords.end());
  for (CountedWord& one : read_counts(path)) {
    if (one.count >= min_count) words.push_back(std::move(one.word));
  }
  if (std::ssize(words) > kNumSpecialWords) return words;
  throw Error(Blame::user, text("caption.min_count: no word of ", path.string(), " stands ", min_count, " times"),
              "--set caption.min_count=1");
}

bool is_vocabulary(const std::vector<std::string>& classes) {
  return std::ssize(classes) > kNumSpecialWords &&
         std::equal(kSpecialWords.begin(), kSpecialWords.end(), classes.begin());
}

UnknownWords find_unknown_words(const base::Path& folder, const std::vector<std::string>& vocabulary) {
  UnknownWords found;
  const base::Path path = folder / kWordCounts;
  if (!std::filesystem::exists(path)) return found;
  const std::set<std::string_view> known(vocabulary.begin(), vocabulary.end());
  for (CountedWord& one : read_counts(path)) {
    found.all += one.count;
    if (known.contains(one.word)) continue;
    found.unknown += one.count;
    found.names.push_back(std::move(one.word));
  }
  return found;
}

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i) numbers_.emplace(words_[i], static_cast<int64_t>(i));
}

int64_t Vocabulary::number_of(const std::string& word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? kUnknownWord : found->second;
}

int64_t Vocabulary::encode(const std::vector<std::string>& words, std::span<int64_t> out) const {
  std::fill(out.begin(), out.end(), kPadWord);
  const size_t count = std::min(words.size(), out.size() - 1);
  for (size_t i = 0; i < count; ++i) out[i] = number_of(words[i]);
  out[count] = kEndWord;
  return static_cast<int64_t>(count) + 1;
}

std::vector<std::string> Vocabulary::decode(std::span<const float> values) const {
  std::vector<std::string> words;
  for (const float value : values) {
    const auto number = static_cast<int64_t>(std::lround(value));
    if (number == kEndWord || number < 0 || number >= size()) break;
    words.push_back(word(number));
  }
  return words;
}

}  // namespace lockstep::task
