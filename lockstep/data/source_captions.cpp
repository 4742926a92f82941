// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/source_captions.h"

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/data/json_slices.h"
#include "lockstep/data/source_table.h"
#include "lockstep/data/text_table.h"

namespace lockstep::data {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

const std::vector<std::string> kCaptionColumns = {"caption", "captions", "comment", "sentence", "text", "title"};
const std::vector<std::string> kPictureColumns = {"path",  "file",      "filename",  "filepath",
                                                  "image", "imagepath", "imagename", "img"};
constexpr int64_t kMaxCaptionList = int64_t{8} << 30;

struct Captioned {
  std::string picture;
  Part part = Part::open;
  std::vector<std::string> captions;
};

class CaptionReader {
 public:
  explicit CaptionReader(const SourceOptions& options) : options_(options), source_(options.path.string()) {
    const std::string content = base::read_file(options.path, kMaxCaptionList);
    const std::string extension = extension_of(source_);
    if (extension == "jsonl" || extension == "ndjson") {
      read_lines(content);
    } else if (extension == "json") {
      for_each_element(content, source_, [&](std::string_view key, JsonSlice slice) {
        if (key.empty() || key == "images" || key == "annotations" || key == "data")
          add(parse_slice(content, source_, slice));
      });
    } else {
      read_table(content);
    }
    if (all_.empty()) throw Error(Blame::user, text(source_, ": no caption in it"), "see lockstep prep --help");
  }
  std::vector<Captioned> take() { return std::move(all_); }

 private:
  void read_lines(const std::string& content) {
    size_t begin = 0;
    while (begin < content.size()) {
      const size_t end = std::min(content.find('\n', begin), content.size());
      if (!base::trim(std::string_view(content).substr(begin, end - begin)).empty())
        add(parse_slice(content, source_, {begin, end - begin}));
      begin = end + 1;
    }
  }

  void read_table(const std::string& content) {
    const bool is_flickr8k =
        extension_of(source_) == "token";  // "a.jpg#0" looks like no picture, and there is no header
    const TextTable table(content, source_, is_flickr8k ? TextTable::Header::none : TextTable::Header::find_out);
    int64_t picture =
        options_.path_column.empty() ? table.find_column(kPictureColumns) : table.named_column(options_.path_column);
    int64_t caption = table.find_column(kCaptionColumns);
    if (picture < 0) picture = 0;
    if (caption < 0) caption = table.num_columns() - 1;
    if (caption == picture)
      throw Error(Blame::user, text(source_, ": which column is the caption?"), "name it 'caption' in the first row");
    for (int64_t i = 0; i < table.size(); ++i) {
      const auto cells = table.row(i);
      if (static_cast<int64_t>(cells.size()) <= std::max(picture, caption))
        throw Error(Blame::user, text(table.where(i), ": too few columns"));
      const std::string& name = cells[static_cast<size_t>(picture)];
      const size_t number = name.rfind(".jpg#");  // Flickr8k counts captions behind the name
      put(number == std::string::npos ? name : name.substr(0, number + 4), Part::open,
          cells[static_cast<size_t>(caption)]);
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
    const Part part = part_named(entry.string_or("split", ""));
    for (const char* key : {"caption", "captions", "text", "sentences"}) {
      const Json* found = entry.find(key);
      if (!found) continue;
      if (found->is_string()) {
        put(name, part, found->as_string());
        continue;
      }
      for (const auto& one : found->items())
        put(name, part, one.is_object() ? one.at("raw").as_string() : one.as_string());
    }
  }

  void put(const std::string& picture, Part part, const std::string& caption) {
    const auto [known, is_new] = places_.emplace(picture, all_.size());
    if (is_new) all_.push_back({picture, part, {}});
    all_[known->second].captions.push_back(caption);
  }

  const SourceOptions& options_;
  std::string source_;
  std::map<std::string, size_t> places_;
  std::vector<Captioned> all_;
};

class CaptionSource final : public Source {
 public:
  explicit CaptionSource(const SourceOptions& options) {
    std::vector<Captioned> all = CaptionReader(options).take();
    tree_ = std::make_unique<FileTree>(find_images(options, options.path, all.front().picture));
    for (auto& one : all) {
      try {
        samples_.push_back({one.picture, kNoLabel, one.part, tree_->size_of(one.picture)});
        captions_.push_back(std::move(one.captions));
      } catch (const Error& error) {
        refused_.push_back({one.picture, error.what()});
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
  if (!std::filesystem::is_regular_file(options.path, error)) return false;
  const std::string extension = extension_of(options.path.string());
  if (extension == "jsonl" || extension == "ndjson") return true;
  if (extension == "json") return true;  // COCO was asked before
  if (extension != "csv" && extension != "tsv" && extension != "token" && extension != "txt") return false;
  const std::string stem = options.path.stem().string();
  if (extension == "token" || stem.find("caption") != std::string::npos) return true;
  const TextTable table(base::read_file(options.path, kMaxCaptionList), options.path.string());
  return table.find_column(kCaptionColumns) >= 0;
}

std::unique_ptr<Source> open_captions(const SourceOptions& options) {
  return std::make_unique<CaptionSource>(options);
}

}  // namespace lockstep::data
