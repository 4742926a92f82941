// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_captions.h"

#include <algorithm>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/json_slices.h"
#include "lockstep/sources/source_table.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

const std::vector<std::string> kCaptionColumns = {"caption", "captions", "comment", "sentence", "text", "title"};
const std::vector<std::string> kImageColumns = {"path",  "file",      "filename",  "filepath",
                                                "image", "imagepath", "imagename", "img"};
constexpr int64_t kMaxCaptionList = int64_t{8} << 30;

struct Captioned {
  std::string image;
  Part part = Part::open;
  std::vector<std::string> captions;
};

// Without a header: an image's name and something of several words.
bool holds_sentences(const TextTable& table) {
  if (!table.header().empty() || table.num_columns() != 2) return false;
  const int64_t rows = std::min<int64_t>(table.size(), 1000);
  int64_t sentences = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto cells = table.row(i);
    sentences += cells.size() == 2 && std::count(cells[1].begin(), cells[1].end(), ' ') >= 2;
  }
  return 2 * sentences > rows;
}

// The list: SOURCE itself, or the one captions.* in a folder; empty: there is none, or there are several.
base::Path caption_list(const base::Path& source) {
  std::error_code error;
  if (!std::filesystem::is_directory(source, error)) return source;
  std::vector<base::Path> found;
  for (const char* name : {"captions.json", "captions.jsonl", "captions.ndjson", "captions.tsv", "captions.csv",
                           "captions.txt", "captions.token"}) {
    if (std::filesystem::is_regular_file(source / name, error)) found.push_back(source / name);
  }
  return found.size() == 1 ? found.front() : base::Path();
}

class CaptionReader {
 public:
  CaptionReader(const SourceOptions& options, const base::Path& list, const std::string& content)
      : options_(options), source_(list.string()) {
    const std::string extension = extension_of(source_);
    if (extension == "jsonl" || extension == "ndjson") {
      read_lines(content);
    } else if (extension == "json") {
      for_each_element(content, source_, [&](std::string_view key, JsonSlice slice) {
        if (key.empty() || key == "images" || key == "annotations" || key == "data") add_slice(content, slice);
      });
    } else {
      read_table(content);
    }
    if (all_.empty()) throw Error(Blame::user, text(source_, ": no caption in it"), "see lockstep prep --help");
  }
  std::vector<Captioned> take() { return std::move(all_); }
  std::vector<Refused> take_refused() { return std::move(refused_); }

 private:
  void read_lines(const std::string& content) {
    size_t begin = 0;
    while (begin < content.size()) {
      const size_t end = std::min(content.find('\n', begin), content.size());
      if (!base::trim(std::string_view(content).substr(begin, end - begin)).empty())
        add_slice(content, {begin, end - begin});
      begin = end + 1;
    }
  }

  void add_slice(const std::string& content, JsonSlice slice) {
    read_slice(content, source_, slice, [this](const Json& entry) { add(entry); });
  }

  void read_table(const std::string& content) {
    const bool is_flickr8k = extension_of(source_) == "token";  // "a.jpg#0" looks like no image, and there is no header
    const TextTable table(content, source_, is_flickr8k ? TextTable::Header::none : TextTable::Header::find_out);
    int64_t image =
        options_.path_column.empty() ? table.find_column(kImageColumns) : table.named_column(options_.path_column);
    int64_t caption = table.find_column(kCaptionColumns);
    const int64_t part = part_column_of(table, options_);
    if (image < 0) image = 0;
    if (caption < 0) caption = table.num_columns() - 1;
    if (caption == image)
      throw Error(Blame::user, text(source_, ": which column is the caption?"), "name it 'caption' in the first row");
    for (int64_t i = 0; i < table.size(); ++i) {
      const auto cells = table.row(i);
      const auto count = static_cast<int64_t>(cells.size());
      if (count <= std::max({image, caption, part})) {
        refused_.push_back({table.where(i), "too few columns"});
        continue;
      }
      if (count > table.num_columns() && caption != table.num_columns() - 1) {
        throw Error(Blame::user, text(table.where(i), ": ", count, " columns, the first row has ", table.num_columns()),
                    "put a caption that holds the separator into quotes: \"A dog, running\"");
      }
      // The last column takes separators that nobody quoted.
      const std::string sentence =
          count > table.num_columns() ? table.rest_of_row(i, caption) : cells[static_cast<size_t>(caption)];
      const std::string& name = cells[static_cast<size_t>(image)];
      const size_t number = name.rfind(".jpg#");  // Flickr8k counts captions behind the name
      put(number == std::string::npos ? name : name.substr(0, number + 4),
          part < 0 ? Part::open : named_part(cells[static_cast<size_t>(part)], table.where(i)), sentence);
    }
  }

  void add(const Json& entry) {
    if (!entry.is_object())
      throw Error(Blame::user,
                  text(source_, ": an object with image and caption is expected, not ", entry.kind_name()));
    std::string name;
    for (const char* key : {"image", "filename", "file_name", "path", "file", "img"}) {
      if (const Json* found = entry.find(key); found && name.empty()) name = found->as_string();
    }
    if (name.empty())
      throw Error(Blame::user, text(source_, ": an entry names no image"), R"({"image": "a.jpg", "caption": "..."})");
    if (const Json* folder = entry.find("filepath"); folder && folder->is_string())
      name = text(folder->as_string(), "/", name);
    const std::string where = text(source_, ": ", name), split = part_word_of(entry, where, options_);
    const Part part = split.empty() ? Part::open : named_part(split, where);
    const size_t before = num_captions_;
    for (const char* key : {"caption", "captions", "text", "sentences"}) {
      const Json* found = entry.find(key);
      if (!found) continue;
      if (found->is_string()) {
        put(name, part, found->as_string());
        continue;
      }
      if (!found->is_array()) {
        throw Error(Blame::user,
                    text(found->where(), ": a caption is a text or a list of texts, not ", found->kind_name()),
                    "correct or remove this entry");
      }
      for (const auto& one : found->items())
        put(name, part, one.is_object() ? one.at("raw").as_string() : one.as_string());
    }
    if (num_captions_ == before) refused_.push_back({name, "it has no caption"});
  }

  void put(const std::string& image, Part part, const std::string& caption) {
    const auto [known, is_new] = positions_.emplace(image, all_.size());
    if (is_new) all_.push_back({image, part, {}});
    all_[known->second].captions.push_back(caption);
    ++num_captions_;
  }

  const SourceOptions& options_;
  std::string source_;
  std::map<std::string, size_t> positions_;
  std::vector<Captioned> all_;
  std::vector<Refused> refused_;
  size_t num_captions_ = 0;
};

class CaptionSource final : public Source {
 public:
  explicit CaptionSource(const SourceOptions& options) {
    const base::Path list = caption_list(options.path);
    if (list.empty())
      throw Error(Blame::user, text(options.path.string(), ": no captions.*, or several"), "name the list");
    const std::string content = base::read_file(list, kMaxCaptionList);
    note_list(content);
    CaptionReader reader(options, list, content);
    std::vector<Captioned> all = reader.take();
    refused_ = reader.take_refused();
    std::vector<std::string> first;
    for (size_t i = 0; i < all.size() && i < 100; ++i) first.push_back(all[i].image);
    tree_ = std::make_unique<FileTree>(find_images(options, list, first));
    for (auto& one : all) {
      try {
        samples_.push_back({one.image, shards::kNoLabel, one.part, tree_->size_of(one.image)});
        captions_.push_back(std::move(one.captions));
      } catch (const Error& error) {
        if (error.blame() != Blame::user) throw;
        refused_.push_back({one.image, error.what()});
      }
    }
  }

  std::vector<SourceMember> load(int64_t i) const override {
    Json sample = Json::object();
    sample["captions"] = Json::array_of(captions_[static_cast<size_t>(i)]);
    return {{"", tree_->read(samples_[static_cast<size_t>(i)].name)}, {"json", sample.dump(-1)}};
  }

 private:
  std::unique_ptr<FileTree> tree_;
  std::vector<std::vector<std::string>> captions_;
};

}  // namespace

bool looks_like_captions(const SourceOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.path, error)) return !caption_list(options.path).empty();
  if (!std::filesystem::is_regular_file(options.path, error)) return false;
  const std::string extension = extension_of(options.path.string());
  if (extension == "jsonl" || extension == "ndjson") return true;
  if (extension == "json") return true;  // COCO was asked before
  if (extension != "csv" && extension != "tsv" && extension != "token" && extension != "txt") return false;
  const std::string stem = options.path.stem().string();
  if (extension == "token" || stem.find("caption") != std::string::npos) return true;
  const TextTable table(base::read_file(options.path, kMaxCaptionList), options.path.string());
  if (!options.label_column.empty() || has_label_column(table)) return false;  // the others stay beside the label
  return table.find_column(kCaptionColumns) >= 0 || holds_sentences(table);
}

std::unique_ptr<Source> open_captions(const SourceOptions& options) {
  return std::make_unique<CaptionSource>(options);
}

}  // namespace lockstep::sources
