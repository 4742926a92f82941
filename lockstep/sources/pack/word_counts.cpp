// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/word_counts.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/task/ptb_tokens.h"

namespace lockstep::sources {

void WordCounts::add(const FinishedSample& sample) {
  const auto member = std::find_if(sample.members.begin(), sample.members.end(),
                                   [](const auto& one) { return one.extension == "json"; });
  if (member == sample.members.end() || member->bytes.find("\"captions\"") == std::string::npos) return;
  base::Json all;
  try {
    all = base::parse_json(member->bytes, "json", {.max_bytes = member->bytes.size()});
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) throw;
    return;  // a foreign member
  }
  const base::Json* captions = all.is_object() ? all.find("captions") : nullptr;
  if (!captions || !captions->is_array()) return;
  for (const auto& caption : captions->items()) {
    if (!caption.is_string()) continue;
    for (auto& word : task::ptb_tokens(caption.as_string())) ++counts_[std::move(word)];
  }
}

void WordCounts::add(const WordCounts& other) {
  for (const auto& [word, count] : other.counts_) counts_[word] += count;
}

base::Json WordCounts::to_json() const {
  base::Json all = base::Json::object();
  for (const auto& [word, count] : counts_) all.append(word) = count;  // each key is there once
  return all;
}

WordCounts WordCounts::from_json(const base::Json& value) {
  WordCounts all;
  for (const auto& member : value.members()) all.counts_[member.key] = member.value.as_int();
  return all;
}

std::string WordCounts::csv() const {
  std::vector<std::pair<std::string, int64_t>> words(counts_.begin(), counts_.end());
  std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string lines = "word,count\n";
  for (const auto& [word, count] : words) lines += base::text(word, ",", count, "\n");
  return lines;
}

}  // namespace lockstep::sources
