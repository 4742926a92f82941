// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_webdataset.h"

#include <algorithm>
#include <charconv>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/shards/tar.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

// The tar files of SOURCE and of its folders of parts, sorted.
std::vector<Path> tar_files(const Path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return path.extension() == ".tar" ? std::vector<Path>{path} : std::vector<Path>{};
  std::vector<Path> files;
  for (const Path& folder : {path, path / "train", path / "validate", path / "val", path / "test"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".tar" && entry.path().filename().string().front() != '.')
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// By a word of its name ("imagenet-train-0001.tar"), else by its folder.
Part part_of_tar(const Path& path) {
  const std::string stem = path.stem().string();
  for (size_t begin = 0; begin < stem.size();) {
    const size_t end = std::min(stem.find_first_of("-_.", begin), stem.size());
    if (const Part part = part_named(stem.substr(begin, end - begin)); part != Part::open) return part;
    begin = end + 1;
  }
  return part_named(path.parent_path().filename().string());
}

class WebDatasetSource final : public Source {
 public:
  explicit WebDatasetSource(const Path& path) {
    for (const auto& file : tar_files(path)) add_tar(file);
    int32_t most = shards::kNoLabel;
    for (const auto& sample : samples_) most = std::max(most, sample.label);
    if (static_cast<int32_t>(classes_.size()) <= most) {
      classes_.clear();
      for (int32_t i = 0; i <= most; ++i) classes_.push_back(std::to_string(i));
    }
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const Entry& entry = entries_[static_cast<size_t>(i)];
    std::vector<SourceMember> members;
    bool has_image = false;  // the first is the sample's; another one stays beside it under its name
    for (const auto& member : entry.members) {
      if (member.extension == "cls") continue;
      SourceMember one{member.extension, std::string(bytes_at(entry.tar, member))};
      const bool is_image = !has_image && image::is_image_extension(one.extension);
      if (is_image) one.extension = "";
      has_image = has_image || is_image;
      members.insert(is_image ? members.begin() : members.end(), std::move(one));
    }
    if (members.empty()) throw Error(Blame::user, "the sample has a label and nothing else");
    return members;
  }

 private:
  struct MemberAt {
    std::string extension;
    int64_t offset;
    int64_t size;
  };
  struct Entry {
    size_t tar;
    std::vector<MemberAt> members;
  };

  std::string_view bytes_at(size_t tar, const MemberAt& member) const {
    return {reinterpret_cast<const char*>(tars_[tar].bytes().data()) + member.offset, static_cast<size_t>(member.size)};
  }

  void add_tar(const Path& path) {
    std::error_code error;
    if (classes_.empty() && std::filesystem::exists(path.parent_path() / shards::kShardList, error))
      classes_ = shards::read_shard_list(path.parent_path()).classes;
    tars_.emplace_back(path);
    const Part part = part_of_tar(path);
    const size_t first = samples_.size();
    shards::TarReader reader(tars_.back().bytes(), path.string());
    std::string key;
    while (const auto member = reader.next()) {
      const size_t slash = member->name.rfind('/') + 1;
      const size_t dot = member->name.find('.', slash);
      if (dot == std::string::npos || dot == slash || member->name.starts_with("__")) {
        refused_.push_back({text(path.filename().string(), "/", member->name), "no KEY.EXTENSION"});
        continue;
      }
      if (samples_.size() == first || member->name.substr(0, dot) != key) {
        key = member->name.substr(0, dot);
        samples_.push_back({key, shards::kNoLabel, part, 0});
        entries_.push_back({tars_.size() - 1, {}});
      }
      std::string extension = member->name.substr(dot + 1);
      for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      entries_.back().members.push_back({extension, member->offset, member->size});
      samples_.back().bytes += member->size;
      if (extension == "cls") samples_.back().label = label_of(path, entries_.back().members.back());
    }
  }

  int32_t label_of(const Path& path, const MemberAt& member) const {
    const std::string_view digits = base::trim(bytes_at(tars_.size() - 1, member));
    int32_t label = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), label);
    if (code == std::errc() && end == digits.data() + digits.size() && label >= 0 && label < 10'000'000) return label;
    throw Error(Blame::user,
                text(path.string(), "/", samples_.back().name, ".cls: ", base::quote_json(digits.substr(0, 20)),
                     " is no label"),
                "labels are whole numbers from 0");
  }

  std::vector<base::MappedFile> tars_;
  std::vector<Entry> entries_;
};

}  // namespace

bool looks_like_webdataset(const SourceOptions& options) {
  return !tar_files(options.path).empty();
}

std::unique_ptr<Source> open_webdataset(const SourceOptions& options) {
  return std::make_unique<WebDatasetSource>(options.path);
}

}  // namespace lockstep::sources
