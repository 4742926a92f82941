// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// Sentences with a label each, and no images: a table with a column 'sentence', 'text' or 'caption' and one 'label', or
// JSON (lines) of {"text", "label"}; perhaps with a part ('split'). Each becomes a sample of the member "txt". What
// says the same words as an earlier one, letters' case and punctuation aside, is left out, so that no part knows
// sentences of another; so is what has no word, no label, or a label that no training sentence has.
bool looks_like_sentences(const SourceOptions& options);
std::unique_ptr<Source> open_sentences(const SourceOptions& options);

bool is_sentence_list(const std::string& name);  // .txt, .csv, .tsv, .json, .jsonl, .ndjson

struct ListedSentence {
  std::string place;  // "list.csv:12"
  std::string text;

  bool operator==(const ListedSentence&) const = default;
};
// The sentences of a list, whatever else it says: the lines of a .txt, the rows of a table or of JSON (lines). User
// error where there is no such file, or no column of sentences.
std::vector<ListedSentence> list_sentences(const base::Path& list);

}  // namespace lockstep::sources
