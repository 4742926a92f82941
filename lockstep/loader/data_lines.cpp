// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/data_lines.h"

#include <algorithm>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/image/converter.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::loader {
namespace {

using base::format_count;
using base::text;

constexpr size_t kMostNamed = 8;  // classes, words

std::vector<int64_t> samples_per_class(const Collection& collection) {
  std::vector<int64_t> counts(collection.classes.size());
  for (const auto& sample : collection.samples) {
    if (static_cast<size_t>(sample.label) < counts.size()) ++counts[static_cast<size_t>(sample.label)];
  }
  return counts;
}

// "cat 640, dog 620"; of many classes "37 classes, of 93 to 100 each"
std::string classes_text(const Collection& collection) {
  if (collection.classes.empty()) return "";
  const std::vector<int64_t> counts = samples_per_class(collection);
  if (!collection.labelled) {
    const int64_t most = collection.shards ? collection.shards->most_objects() : 0;
    return text(": ", counts.size(), " ", collection.classes_are,
                most > 0 ? text(", at most ", most, " in an image") : "");
  }
  if (counts.size() > kMostNamed) {
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    return text(": ", counts.size(), " classes, of ", format_count(*least), " to ", format_count(*most), " each");
  }
  std::vector<std::string> words;
  for (size_t i = 0; i < counts.size(); ++i) {
    words.push_back(text(on_one_line(collection.classes[i]), " ", format_count(counts[i])));
  }
  return text(": ", base::join(words, ", "));
}

void add_part(const char* part, const Collection& collection, std::vector<std::string>& lines) {
  const bool is_synthetic = collection.is_synthetic();
  lines.push_back(text(part, ": ", format_count(std::ssize(collection.samples)),
                       is_synthetic ? " synthetic samples"
                                    : text(collection.main_member.empty() ? " images in " : " sentences in ",
                                           on_one_line(collection.root)),
                       classes_text(collection)));
  if (collection.num_ignored == 0) return;
  const std::string_view converter = image::converter_for(sources::extension_of(collection.first_ignored));
  lines.push_back(text("  left out there: ", format_count(collection.num_ignored),
                       collection.num_ignored == 1 ? " file that is" : " files that are",
                       " not named as an image in a class folder, such as ", on_one_line(collection.first_ignored),
                       converter.empty() ? "" : text("; convert such files: ", converter)));
}

void add_crowded(const Collection& collection, int64_t object_slots, std::vector<std::string>& lines) {
  const int64_t most = collection.shards ? collection.shards->most_objects() : 0;
  if (object_slots == 0 || most <= object_slots) return;
  lines.push_back(text("  an image has up to ", format_count(most), " objects, slots are there for ",
                       format_count(object_slots), ": the largest are learnt"));
}

// The classes of which `has` has samples and `lacks` has none.
void add_one_sided(const char* part, const Collection& has, const Collection& lacks, const char* consequence,
                   std::vector<std::string>& lines) {
  if (!has.labelled || !lacks.labelled) return;
  const std::vector<int64_t> there = samples_per_class(has), missing = samples_per_class(lacks);
  std::vector<std::string> names;
  int64_t count = 0;
  for (size_t i = 0; i < there.size() && i < missing.size(); ++i) {
    if (there[i] > 0 && missing[i] == 0 && static_cast<size_t>(++count) <= kMostNamed) {
      names.push_back(on_one_line(has.classes[i]));
    }
  }
  if (count == 0) return;
  lines.push_back(text("  ", part, has.main_member.empty() ? " has no image of " : " has no sentence of ",
                       format_count(count), count == 1 ? " class (" : " classes (", base::join(names, ", "),
                       static_cast<size_t>(count) > kMostNamed ? ", ...): " : "): ", consequence));
}

void add_unknown_words(const Collection& train, const Collection& validate, std::vector<std::string>& lines) {
  if (!task::is_vocabulary(train.classes)) return;
  const task::UnknownWords found = task::find_unknown_words(validate.root, train.classes);
  if (found.unknown == 0) return;
  std::vector<std::string> names;
  for (const std::string& name : found.names) {
    if (names.size() == kMostNamed) break;
    names.push_back(on_one_line(name));
  }
  const double share = static_cast<double>(found.unknown) / static_cast<double>(found.all);
  lines.push_back(text("  of its words ", base::percent(share), " (", format_count(found.unknown), " of ",
                       format_count(found.all), ") are not in the vocabulary, each is <unk>: ", base::join(names, ", "),
                       found.names.size() > names.size() ? ", ..." : ""));
}

}  // namespace

std::vector<std::string> data_lines(const Collections& collections, int64_t object_slots) {
  std::vector<std::string> lines;
  add_part("training", collections.train, lines);
  add_crowded(collections.train, object_slots, lines);
  if (!collections.validate) {
    lines.emplace_back("validation: none (data.validate is empty)");
    return lines;
  }
  add_part("validation", *collections.validate, lines);
  add_unknown_words(collections.train, *collections.validate, lines);
  add_one_sided("validation", collections.train, *collections.validate, "nothing is said of how well they are told",
                lines);
  add_one_sided("training", *collections.validate, collections.train, "they cannot be learnt", lines);
  return lines;
}

std::string on_one_line(const std::string& name) {
  const bool is_plain = std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return is_plain ? name : base::quote_json(name);
}

}  // namespace lockstep::loader
