// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_hdf5.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/hdf5_door.h"
#include "lockstep/sources/source_arrays.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

// What deflate can pack at most is 1,032 to 1. An array that claims more was never written, or its file is forged.
constexpr double kMostPacked = 1100;

// An array's name taken apart: "train/images" and "images_train" are both {"images", train, the group or suffix}.
struct NameParts {
  std::string stem;
  Part part = Part::open;
  std::string group;  // what two arrays that belong together have alike
};

NameParts parts_of_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  const std::string group = slash == std::string::npos ? "" : name.substr(0, slash);
  std::string stem = slash == std::string::npos ? name : name.substr(slash + 1);
  std::transform(stem.begin(), stem.end(), stem.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t cut = stem.find_last_of("_-");
  if (cut != std::string::npos) {
    if (const Part part = part_named(stem.substr(cut + 1)); part != Part::open)
      return {stem.substr(0, cut), part, text(group, "/", stem.substr(cut + 1))};
    if (const Part part = part_named(stem.substr(0, cut)); part != Part::open)
      return {stem.substr(cut + 1), part, text(group, "/", stem.substr(0, cut))};
  }
  const size_t inner = group.rfind('/');
  return {stem, part_named(inner == std::string::npos ? group : group.substr(inner + 1)), text(group, "/")};
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* known) { return word == known; });
}

bool names_samples(const std::string& stem) {
  return is_one_of(stem, {"x", "images", "image", "data", "pictures", "samples", "sequences"});
}

bool names_labels(const std::string& stem) {
  return is_one_of(stem, {"y", "labels", "label", "targets", "target", "classes"});
}

bool can_be_labels(const Hdf5Array& array) {
  return array.type[0] != 'f' && array.slice_bytes() == array.item_bytes;
}

class Hdf5Source final : public Source {
 public:
  explicit Hdf5Source(const SourceOptions& options) : path_(options.path), file_(options.path) {
    int64_t num_classes = 0;
    used_.resize(file_.arrays().size());
    for (const size_t number : sample_arrays(options)) {
      used_[number] = true;
      const Hdf5Array& array = file_.arrays()[number];
      check_size(array);
      if (!array.missing_filter.empty() && array.count() > 0) (void)file_.slice(array, 0);  // says so, once
      const std::vector<int64_t> labels = labels_for(number, options);
      for (int64_t i = 0; i < array.count(); ++i) {
        const int32_t label =
            labels.empty() ? shards::kNoLabel : checked_label(labels[static_cast<size_t>(i)], path_.string(), i);
        num_classes = std::max<int64_t>(num_classes, label + 1);
        samples_.push_back({text(array.name, "#", i), label, parts_of_name(array.name).part, array.slice_bytes()});
        rows_.push_back({number, i});
      }
    }
    classes_ = number_names(num_classes);
    leave_out_others();
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const auto [number, row] = rows_[static_cast<size_t>(i)];
    const Hdf5Array& array = file_.arrays()[number];
    return {array_member(array.type, std::span(array.shape).subspan(1), file_.slice(array, row))};
  }

 private:
  struct RowAt {
    size_t array;
    int64_t row;
  };

  [[noreturn]] void fail(const std::string& what) const {
    std::vector<std::string> names;
    for (const auto& array : file_.arrays()) names.push_back(array.name);
    for (const auto& other : file_.others()) names.push_back(text(other.name, " (", other.reason, ")"));
    throw Error(Blame::user, text(path_.string(), ": ", what),
                text("name it with --path-column (samples) or --label-column (labels); it has: ",
                     names.empty() ? "no array of numbers" : base::join(names, ", ")));
  }

  // Before anything is listed: each sample takes memory.
  void check_size(const Hdf5Array& array) const {
    const auto bytes = static_cast<double>(std::filesystem::file_size(path_));
    const double claimed = static_cast<double>(array.count()) * static_cast<double>(array.slice_bytes());
    if (claimed <= kMostPacked * bytes) return;
    throw Error(Blame::user,
                text(path_.string(), ": ", array.name, " claims ", array.count(), " samples of ", array.slice_bytes(),
                     " bytes, more than a file of ", static_cast<int64_t>(bytes), " bytes can hold"),
                "was it written to its end? make it again with as many rows as there are samples");
  }

  std::vector<size_t> sample_arrays(const SourceOptions& options) const {
    std::vector<size_t> named, wide;
    for (size_t i = 0; i < file_.arrays().size(); ++i) {
      const Hdf5Array& array = file_.arrays()[i];
      if (options.path_column.empty() ? names_samples(parts_of_name(array.name).stem)
                                      : array.name == options.path_column)
        named.push_back(i);
      if (array.shape.size() > 1) wide.push_back(i);
    }
    if (!named.empty()) return named;
    if (!options.path_column.empty()) fail(text("no array '", options.path_column, "'"));
    if (wide.size() != 1) fail("which array holds the samples?");
    return wide;
  }

  // Those in the same place, one a sample; none where there are none.
  std::vector<int64_t> labels_for(size_t number, const SourceOptions& options) {
    const Hdf5Array& samples = file_.arrays()[number];
    const NameParts mine = parts_of_name(samples.name);
    for (size_t i = 0; i < file_.arrays().size(); ++i) {
      const Hdf5Array& array = file_.arrays()[i];
      const NameParts its = parts_of_name(array.name);
      const bool chosen = options.label_column.empty() ? names_labels(its.stem) && its.group == mine.group
                                                       : array.name == options.label_column;
      if (i == number || !chosen) continue;
      if (!can_be_labels(array) || array.count() != samples.count()) {
        fail(text(array.name, " is no list of ", samples.count(), " whole numbers, one for each of ", samples.name));
      }
      used_[i] = true;
      check_size(array);
      return file_.integers(array);
    }
    if (!options.label_column.empty()) fail(text("no array '", options.label_column, "'"));
    return {};
  }

  // A sample is one array's row and its label: what else the file holds is named.
  void leave_out_others() {
    for (size_t i = 0; i < file_.arrays().size(); ++i) {
      const Hdf5Array& array = file_.arrays()[i];
      if (used_[i]) continue;
      std::vector<std::string> sizes;
      for (const int64_t size : array.shape) sizes.push_back(std::to_string(size));
      refused_.push_back({array.name, text("an array of ", base::join(sizes, "x"), " ", array.type,
                                           ", neither the samples nor their labels")});
    }
    refused_.insert(refused_.end(), file_.others().begin(), file_.others().end());
  }

  base::Path path_;
  Hdf5File file_;
  std::vector<bool> used_;  // by array
  std::vector<RowAt> rows_;
};

}  // namespace

bool looks_like_hdf5(const SourceOptions& options) {
  std::error_code error;
  const std::string extension = options.path.extension().string();
  return std::filesystem::is_regular_file(options.path, error) &&
         is_one_of(extension, {".h5", ".hdf5", ".hdf", ".he5"});
}

std::unique_ptr<Source> open_hdf5(const SourceOptions& options) {
  return std::make_unique<Hdf5Source>(options);
}

}  // namespace lockstep::sources
