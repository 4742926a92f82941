// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_sentences.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/json_slices.h"
#include "lockstep/sources/source_table.h"
#include "lockstep/task/ptb_tokens.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

const std::vector<std::string> kSentenceColumns = {"sentence", "text", "caption"};
const std::vector<std::string> kLabelNames = {"label", "class", "category", "target", "y"};
const std::vector<std::string> kPictureColumns = {"path",  "file",      "filename",  "filepath",
                                                  "image", "imagepath", "imagename", "img"};
constexpr int64_t kMaxSentenceList = int64_t{8} << 30;
constexpr int64_t kMostSingle = 20;  // labels of one sentence that are named each
constexpr int64_t kAllEntries = std::numeric_limits<int64_t>::max();

struct SentenceRow {
  std::string place, sentence, label, part;
};

bool is_json_name(const std::string& extension) {
  return extension == "json" || extension == "jsonl" || extension == "ndjson";
}

const Json* find_first(const Json& entry, const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    if (const Json* found = entry.find(key)) return found;
  }
  return nullptr;
}

std::string word_of(const Json* value) {
  return !value || value->is_null() ? "" : value->is_string() ? value->as_string() : value->dump(-1);
}

// Each element of a JSON array or line of JSON lines, with its number; `most` of them.
void for_each_entry(const std::string& content, const std::string& source, int64_t most,
                    const std::function<void(int64_t number, const Json& entry)>& each) {
  int64_t number = 0, done = 0;
  const auto read = [&](JsonSlice slice) {
    if (done++ >= most) return;
    read_slice(content, source, slice, [&](const Json& entry) { each(number, entry); });
  };
  if (extension_of(source) == "json") {
    for_each_element(content, source, [&](std::string_view key, JsonSlice slice) {
      ++number;
      if (key.empty() || key == "sentences" || key == "data") read(slice);
    });
    return;
  }
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    ++number;
    if (!base::trim(std::string_view(content).substr(begin, end - begin)).empty()) read({begin, end - begin});
    begin = end + 1;
  }
}

// Of a list all that is said there; `labelled`: a list without labels is refused.
class SentenceReader {
 public:
  SentenceReader(const SourceOptions& options, const std::string& content, bool labelled)
      : options_(options), source_(options.path.string()), labelled_(labelled) {
    if (is_json_name(extension_of(source_))) {
      for_each_entry(content, source_, kAllEntries, [this](int64_t number, const Json& entry) { add(number, entry); });
    } else {
      read_table(content);
    }
    if (rows_.empty()) throw Error(Blame::user, text(source_, ": no sentence in it"), kFix);
  }
  std::vector<SentenceRow> take() { return std::move(rows_); }
  std::vector<Refused> take_refused() { return std::move(refused_); }

 private:
  static constexpr const char* kFix =
      "name the columns 'sentence' (or 'text') and 'label' in the first row; or --label-column NAME";

  void read_table(const std::string& content) {
    const TextTable table(content, source_);
    const int64_t sentence =
        options_.path_column.empty() ? table.find_column(kSentenceColumns) : table.named_column(options_.path_column);
    const int64_t label = !labelled_                      ? -1
                          : options_.label_column.empty() ? table.find_column(kLabelNames)
                                                          : table.named_column(options_.label_column);
    const int64_t part = labelled_ ? part_column_of(table, options_) : -1;
    if (sentence < 0 || (labelled_ && label < 0)) {
      throw Error(Blame::user,
                  text(source_, ": which column is the ", sentence < 0 ? "sentence" : "label", "?",
                       table.header().empty() ? "" : text(" It has ", base::join(table.header(), ", "))),
                  kFix);
    }
    for (int64_t i = 0; i < table.size(); ++i) {
      const auto cells = table.row(i);
      const auto count = std::ssize(cells);
      if (count > table.num_columns()) {
        throw Error(Blame::user, text(table.where(i), ": ", count, " columns, the first row has ", table.num_columns()),
                    "put a sentence that holds the separator into quotes: \"A dog, running\"");
      }
      if (count <= std::max({sentence, label, part})) {
        refused_.push_back({table.where(i), "too few columns"});
        continue;
      }
      const auto cell = [&](int64_t column) { return column < 0 ? "" : cells[static_cast<size_t>(column)]; };
      rows_.push_back({table.where(i), cell(sentence), cell(label), cell(part)});
    }
  }

  void add(int64_t number, const Json& entry) {
    const std::string place = text(source_, ":", number);
    if (!entry.is_object())
      throw Error(Blame::user, text(place, ": an object is expected, not ", entry.kind_name()),
                  R"({"text": "a red disk", "label": "caption"})");
    const auto named = [&](const std::string& key, const std::vector<std::string>& usual) {
      return key.empty() ? find_first(entry, usual) : entry.find(key);
    };
    const Json* sentence = named(options_.path_column, kSentenceColumns);
    const Json* label = named(options_.label_column, kLabelNames);
    if (!sentence || !sentence->is_string()) {
      refused_.push_back({place, sentence ? "its sentence is no text" : "it has no sentence"});
      return;
    }
    rows_.push_back({place, sentence->as_string(), labelled_ ? word_of(label) : "",
                     labelled_ ? part_word_of(entry, place, options_) : ""});
  }

  const SourceOptions& options_;
  std::string source_;
  bool labelled_;
  std::vector<SentenceRow> rows_;
  std::vector<Refused> refused_;
};

class SentenceSource final : public Source {
 public:
  explicit SentenceSource(const SourceOptions& options) {
    const std::string content = base::read_file(options.path, kMaxSentenceList);
    note_list(content);
    SentenceReader reader(options, content, true);
    std::vector<SentenceRow> rows = reader.take();
    refused_ = reader.take_refused();
    std::erase_if(rows, [this](const SentenceRow& row) { return lacks_something(row); });
    find_classes(rows);
    for (const SentenceRow& row : rows) add(row);
    note_repeated();
  }

  std::vector<SourceMember> load(int64_t i) const override { return {{"txt", sentences_[static_cast<size_t>(i)]}}; }

 private:
  static Part part_of(const SentenceRow& row) {
    return row.part.empty() ? Part::open : named_part(row.part, row.place);
  }

  bool lacks_something(const SentenceRow& row) {
    const char* reason = task::ptb_tokens(row.sentence).empty() ? "the sentence is empty: there is no word in it"
                         : base::trim(row.label).empty()        ? "it has no label"
                                                                : nullptr;
    if (reason) refused_.push_back({row.place, reason});
    return reason != nullptr;
  }

  // Those of the training sentences; where the list has no parts, of all.
  void find_classes(const std::vector<SentenceRow>& rows) {
    std::map<std::string, int64_t> counts;
    for (const auto& row : rows) {
      const Part part = part_of(row);
      if (part == Part::open || part == Part::train) ++counts[std::string(base::trim(row.label))];
    }
    for (const auto& [name, count] : counts) classes_.push_back(name);
    if (classes_.size() < 2) {
      throw Error(Blame::user,
                  classes_.empty() ? "no training sentence has a label"
                                   : text("every training sentence has the label '", classes_.front(), "'"),
                  "two labels at least, such as caption and other");
    }
    note_single(counts);
  }

  void note_single(const std::map<std::string, int64_t>& counts) {
    const auto single = std::count_if(counts.begin(), counts.end(), [](const auto& one) { return one.second == 1; });
    if (single > kMostSingle) {
      notes_.push_back(
          text(single, " of ", counts.size(),
               " labels stand at one sentence alone: is it the column of labels? --label-column names it"));
      return;
    }
    for (const auto& [name, count] : counts) {
      if (count > 1) continue;
      std::vector<std::string> others = classes_;
      std::erase(others, name);
      notes_.push_back(
          text("one sentence alone has the label ", base::quote_json(name), ": ", base::did_you_mean(name, others)));
    }
  }

  void add(const SentenceRow& row) {
    const std::string label(base::trim(row.label));
    const auto found = std::find(classes_.begin(), classes_.end(), label);
    if (found == classes_.end()) {
      refused_.push_back({row.place, text("no training sentence has its label, ", base::quote_json(label))});
      return;
    }
    const Part part = part_of(row);
    const std::string words = base::join(task::ptb_tokens(row.sentence), " ");
    const auto [before, is_new] = first_.emplace(words, samples_.size());
    if (!is_new) return leave_out(row, label, part, before->second);
    samples_.push_back({row.place, static_cast<int32_t>(found - classes_.begin()), part, std::ssize(row.sentence)});
    sentences_.emplace_back(base::trim(row.sentence));
  }

  void leave_out(const SentenceRow& row, const std::string& label, Part part, size_t before) {
    const SourceSample& same = samples_[before];
    const std::string& said = classes_[static_cast<size_t>(same.label)];
    const bool other_part = part != same.part, other_label = label != said;
    ++repeated_;
    across_parts_ += other_part;
    across_labels_ += other_label;
    refused_.push_back(
        {row.place, text("the same words as ", same.name, other_label ? text(", which has the label '", said, "'") : "",
                         other_part ? text(", of the part ", name_of(same.part)) : "")});
  }

  static std::string name_of(Part part) {
    return part == Part::open ? "" : std::string(kPartNames[static_cast<size_t>(part)]);
  }

  void note_repeated() {
    if (repeated_ == 0) return;
    notes_.push_back(text(repeated_, repeated_ == 1 ? " sentence says" : " sentences say",
                          " the same words as an earlier one and ", repeated_ == 1 ? "is" : "are", " left out: ",
                          across_parts_, " in another part (leakage), ", across_labels_, " with another label"));
  }

  std::vector<std::string> sentences_;
  std::map<std::string, size_t> first_;  // words -> sample
  int64_t repeated_ = 0, across_parts_ = 0, across_labels_ = 0;
};

std::vector<ListedSentence> sentence_lines(const std::string& content, const std::string& source) {
  std::vector<ListedSentence> all;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    size_t size = end - begin;
    if (size > 0 && content[end - 1] == '\r') --size;
    all.push_back({text(source, ":", all.size() + 1), content.substr(begin, size)});
    begin = end + 1;
  }
  return all;
}

// A table of one column has no separator by which to know it: lines, some in quotes, below the column's name.
std::vector<ListedSentence> one_column(std::vector<ListedSentence> lines) {
  lines.erase(lines.begin());
  for (auto& line : lines) {
    std::string& words = line.text;
    if (words.size() < 2 || words.front() != '"' || words.back() != '"') continue;
    words = words.substr(1, words.size() - 2);
    for (size_t at = words.find("\"\""); at != std::string::npos; at = words.find("\"\"", at + 1)) words.erase(at, 1);
  }
  return lines;
}

bool is_sentence_column(const std::string& name) {
  return std::find(kSentenceColumns.begin(), kSentenceColumns.end(), name) != kSentenceColumns.end();
}

}  // namespace

bool looks_like_sentences(const SourceOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.path, error) || options.label_column == "none") return false;
  const std::string extension = extension_of(options.path.string());
  const bool is_json = is_json_name(extension);
  if (!is_json && extension != "csv" && extension != "tsv") return false;
  const std::string content = base::read_file(options.path, kMaxSentenceList);
  if (!is_json) {
    const TextTable table(content, options.path.string());
    return table.find_column(kSentenceColumns) >= 0 && table.find_column(kPictureColumns) < 0 &&
           (!options.label_column.empty() || table.find_column(kLabelNames) >= 0);
  }
  bool found = false;
  for_each_entry(content, options.path.string(), 1, [&](int64_t, const Json& entry) {
    if (!entry.is_object()) return;
    const bool has_label = find_first(entry, kLabelNames) || entry.find(options.label_column);
    found = has_label && find_first(entry, kSentenceColumns) && !find_first(entry, kPictureColumns) &&
            !entry.find("file_name");
  });
  return found;
}

std::unique_ptr<Source> open_sentences(const SourceOptions& options) {
  return std::make_unique<SentenceSource>(options);
}

bool is_sentence_list(const std::string& name) {
  const std::string extension = extension_of(name);
  return extension == "txt" || extension == "csv" || extension == "tsv" || is_json_name(extension);
}

std::vector<ListedSentence> list_sentences(const base::Path& list) {
  std::error_code error;
  if (!std::filesystem::exists(list, error))
    throw Error(Blame::user, text(list.string(), ": there is no such list of sentences"), "check the path");
  const bool is_table = extension_of(list.string()) != "txt";
  if (!is_sentence_list(list.string())) {
    throw Error(Blame::user,
                text(list.string(), ": sentences stand in a .txt (one a line), .csv, .tsv, .json or .jsonl"),
                "name the list so");
  }
  const std::string content = base::read_file(list, kMaxSentenceList);
  std::vector<ListedSentence> all;
  if (!is_table || is_sentence_column(content.substr(0, content.find_first_of("\r\n")))) {
    all = sentence_lines(content, list.string());
    if (is_table) all = one_column(std::move(all));
  } else {
    const SourceOptions options{.path = list};
    for (auto& row : SentenceReader(options, content, false).take())
      all.push_back({std::move(row.place), std::move(row.sentence)});
  }
  if (all.empty()) throw Error(Blame::user, text(list.string(), ": no sentence in it"));
  return all;
}

}  // namespace lockstep::sources
