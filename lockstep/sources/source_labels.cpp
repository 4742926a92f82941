// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_labels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/label_image.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

const std::vector<std::string> kVocClasses = {
    "background", "aeroplane", "bicycle",      "bird",  "boat",        "bottle", "bus",
    "car",        "cat",       "chair",        "cow",   "diningtable", "dog",    "horse",
    "motorbike",  "person",    "potted plant", "sheep", "sofa",        "train",  "tv/monitor"};
constexpr const char* kLists = "ImageSets/Segmentation";

struct LabelFolders {
  std::string images, labels;
  bool is_voc = false;
};

std::vector<LabelFolders> layouts() {
  return {
      {"JPEGImages", "SegmentationClass", true}, {"images", "labels"}, {"images", "masks"}, {"images", "annotations"}};
}

const LabelFolders* layout_of(const FileTree& tree) {
  static const std::vector<LabelFolders> kLayouts = layouts();
  for (const LabelFolders& one : kLayouts) {
    if (tree.has_folder(one.images) && tree.has_folder(one.labels)) return &one;
  }
  return nullptr;
}

std::span<const std::byte> bytes_in(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

std::string without_extension(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

std::vector<std::string> lines_of(const std::string& content) {
  std::vector<std::string> lines;
  for (const auto& line : base::split(content, '\n')) {
    if (const std::string word(base::trim(line)); !word.empty()) lines.push_back(word);
  }
  return lines;
}

class LabelSource final : public Source {
 public:
  explicit LabelSource(const base::Path& root) : tree_(root) {
    const LabelFolders* found = layout_of(tree_);
    if (!found) {
      throw Error(Blame::user, text(root.string(), ": no images with label images in it"),
                  "JPEGImages and SegmentationClass as in PASCAL VOC, or images and labels");
    }
    folders_ = *found;
    read_classes();
    read_lists();
    FileTree::Listing listing = tree_.list(folders_.images);
    refused_ = std::move(listing.refused);
    std::set<std::string> found_stems;
    for (auto& file : listing.files) {
      const auto part = part_of(file.name);
      found_stems.insert(stem_of(file.name));
      if (!has_image_name(file.name)) {
        refused_.push_back({file.name, "no image"});
      } else if (!tree_.has_file(label_file(file.name))) {
        // Most of VOC's images have no labels, and no list names those.
        if (!folders_.is_voc || (has_lists_ && part))
          refused_.push_back({file.name, text("has no label image ", label_file(file.name))});
      } else if (part) {
        const int64_t bytes = file.size + tree_.size_of(label_file(file.name));
        samples_.push_back({std::move(file.name), shards::kNoLabel, *part, bytes});
      }
    }
    for (const auto& [stem, part] : parts_) {
      if (found_stems.count(stem) > 0) continue;
      refused_.push_back({stem, text("is listed in ", kLists, ", and ", folders_.images, " has no such image")});
    }
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const std::string& name = samples_[static_cast<size_t>(i)].name;
    std::string image = tree_.read(name), labels = tree_.read(label_file(name));
    const image::ImageInfo info = image::read_image_info(bytes_in(image));
    const image::Bitmap decoded = image::decode_labels(bytes_in(labels));
    if (decoded.width != info.width || decoded.height != info.height) {
      throw Error(Blame::user,
                  text("its label image is ", decoded.width, " x ", decoded.height, ", the image ", info.width, " x ",
                       info.height),
                  "labels stand for pixels of the image as it is seen");
    }
    return {{"", std::move(image)}, {kLabelImage, std::move(labels)}};
  }

 private:
  void read_classes() {
    for (const char* name : {"classes.txt", "labels.txt"}) {
      if (!tree_.has_file(name)) continue;
      const std::string content = tree_.read(name);
      note_list(content);
      classes_ = lines_of(content);
      return;
    }
    if (folders_.is_voc) classes_ = kVocClasses;
  }

  // Of VOC: which image is of which part. Without lists every image that has labels belongs to the split.
  void read_lists() {
    if (!folders_.is_voc) return;
    for (const auto& [list, part] : {std::pair("train", Part::train), {"val", Part::validate}, {"test", Part::test}}) {
      const std::string name = text(kLists, "/", list, ".txt");
      if (!tree_.has_file(name)) continue;
      const std::string content = tree_.read(name);
      note_list(content);
      for (const auto& stem : lines_of(content)) parts_.emplace(stem, part);
      has_lists_ = true;
    }
  }

  // None: VOC lists it for no part.
  std::optional<Part> part_of(const std::string& name) const {
    if (has_lists_) {
      const auto found = parts_.find(stem_of(name));
      return found == parts_.end() ? std::nullopt : std::optional(found->second);
    }
    const size_t begin = folders_.images.size() + 1, end = name.find('/', begin);
    return end == std::string::npos ? Part::open : part_named(name.substr(begin, end - begin));
  }

  static std::string stem_of(const std::string& image) {
    return without_extension(base::Path(image).filename().string());
  }

  std::string label_file(const std::string& image) const {
    return text(folders_.labels, without_extension(image.substr(folders_.images.size())), ".png");
  }

  FileTree tree_;
  LabelFolders folders_;
  std::map<std::string, Part> parts_;
  bool has_lists_ = false;
};

}  // namespace

bool looks_like_labels(const SourceOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_directory(options.path, error)) return false;
  const FileTree tree(options.path);
  const LabelFolders* found = layout_of(tree);
  if (!found || found->is_voc) return found != nullptr;
  // "images" and "annotations" may be a COCO set or two classes: label images are PNGs and nothing else.
  const auto labels = tree.list(found->labels).files;
  return !labels.empty() && std::all_of(labels.begin(), labels.end(),
                                        [](const TreeFile& file) { return extension_of(file.name) == "png"; });
}

std::unique_ptr<Source> open_labels(const SourceOptions& options) {
  return std::make_unique<LabelSource>(options.path);
}

}  // namespace lockstep::sources
