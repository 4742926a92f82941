// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_coco.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/turn.h"
#include "lockstep/sources/coco_list.h"
#include "lockstep/sources/turned_objects.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

struct ListFile {
  Path path;
  Part part = Part::open;
  std::string suffix;  // "train2017" of instances_train2017.json
};

ListFile list_file(const Path& path) {
  const std::string stem = path.stem().string();
  const std::string suffix = stem.substr(stem.rfind('_') + 1);
  return {path, part_named(suffix), suffix};
}

std::vector<ListFile> list_files(const Path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {list_file(path)};
  std::vector<ListFile> files;
  const Path folder = std::filesystem::is_directory(path / "annotations", error) ? path / "annotations" : path;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string stem = entry.path().stem().string();
    const bool known = stem.starts_with("instances_") || stem.starts_with("captions_") || stem.ends_with(".coco");
    if (entry.path().extension() == ".json" && known) files.push_back(list_file(entry.path()));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

class CocoSource final : public Source {
 public:
  explicit CocoSource(const SourceOptions& options) : masks_(options.masks) {
    const std::vector<ListFile> files = list_files(options.path);
    if (files.empty())
      throw Error(Blame::user, text(options.path.string(), ": no instances_*.json or captions_*.json in it"));
    const Path beside = files.front().path.parent_path().empty() ? Path(".") : files.front().path.parent_path();
    const Path root = !options.images.empty()              ? options.images
                      : beside.filename() == "annotations" ? beside / ".."
                                                           : beside;
    tree_ = std::make_unique<FileTree>(root);
    for (const auto& file : files) {
      texts_.emplace_back(file.path);
      const auto bytes = texts_.back().bytes();
      const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      note_list(content);
      lists_.emplace_back(content, file.path.string());
      for (const auto& [id, name] : lists_.back().categories()) {
        if (labels_.emplace(name, static_cast<int32_t>(classes_.size())).second) classes_.push_back(name);
      }
    }
    for (size_t list = 0; list < files.size(); ++list) {
      add_images(list, files[list]);
      for (auto& note : lists_[list].notes()) notes_.push_back(std::move(note));
      refused_.insert(refused_.end(), lists_[list].left_out().begin(), lists_[list].left_out().end());
    }
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const Entry& entry = entries_[static_cast<size_t>(i)];
    base::Json sample = base::Json::object();
    const CocoImage& first = lists_[entry.images.front().list].images()[entry.images.front().image];
    sample["image_id"] = first.id;
    sample["file_name"] = first.file_name;
    if (!first.columns.is_null()) sample["columns"] = first.columns;
    std::string image = tree_->read(samples_[static_cast<size_t>(i)].name);
    const image::ImageInfo info = image::read_image_info(std::as_bytes(std::span(image.data(), image.size())));
    const int orientation = set_size(entry, info, sample);
    std::set<std::string> told;
    for (const auto& at : entry.images) lists_[at.list].describe(at.image, labels_, sample, told);
    leave_out_bad_outlines(sample);
    std::string outlined = masks_ ? outlines(sample, orientation) : "";
    turn_objects(sample, orientation);
    std::vector<SourceMember> members{{"", std::move(image)}, {"json", sample.dump(-1)}};
    if (masks_) members.push_back({kLabelImage, std::move(outlined)});
    return members;
  }

 private:
  struct ImageAt {
    size_t list;
    size_t image;
  };
  struct Entry {
    std::vector<ImageAt> images;  // the same image in several lists
  };

  // "width" and "height" of what the lists draw on; without any the image as stored. Returns the EXIF orientation by
  // which that has to be turned. User error when a list says another size than the image, or the others, have.
  int set_size(const Entry& entry, const image::ImageInfo& info, base::Json& sample) const {
    const bool swaps = image::Turn(info.orientation).swaps;
    int64_t width = swaps ? info.height : info.width, height = swaps ? info.width : info.height;
    std::optional<int> orientation;
    for (const auto& at : entry.images) {
      const CocoImage& image = lists_[at.list].images()[at.image];
      if (image.width <= 0 || image.height <= 0) continue;
      const int found = orientation_of_list(info, image.width, image.height);
      if (orientation && *orientation != found)
        throw Error(Blame::user, "one of its lists is drawn on the image as stored, another on it turned upright");
      orientation = found;
      width = image.width;
      height = image.height;
    }
    sample["width"] = width;
    sample["height"] = height;
    return orientation.value_or(info.orientation);
  }

  // The objects of a sample as an image, turned; one without an outline has no pixel there.
  static std::string outlines(const base::Json& sample, int orientation) {
    const int64_t width = sample.at("width").as_int(), height = sample.at("height").as_int();
    image::ObjectsImage image(width, height);
    if (const base::Json* objects = sample.find("objects")) {
      for (const auto& object : objects->items()) {
        const base::Json* outline = object.find("segmentation");
        std::optional<image::Mask> mask;  // one at a time: a hundred of them would be a hundred bytes a pixel
        if (outline) mask = image::rasterize_mask(*outline, width, height);
        image.add(mask ? &*mask : nullptr);
      }
    }
    return image.png(orientation);
  }

  // Where the images of a list lie below the root: the first one may be missing.
  std::string prefix_of(const CocoList& list, const ListFile& file) const {
    if (list.images().empty()) return "";
    for (const auto& image : list.images()) {
      for (const std::string& prefix :
           {std::string(), file.suffix + "/", text("images/", file.suffix, "/"), std::string("images/")}) {
        if (tree_->has_file(prefix + image.file_name)) return prefix;
      }
    }
    throw Error(Blame::user,
                text(file.path.string(), ": not one of its images (", base::quote_json(list.images()[0].file_name),
                     ", ...) is found below ", tree_->root().string()),
                "say where the images lie with --images DIR");
  }

  void add_images(size_t list, const ListFile& file) {
    const std::string prefix = prefix_of(lists_[list], file);
    const auto& images = lists_[list].images();
    for (size_t i = 0; i < images.size(); ++i) {
      const std::string name = prefix + images[i].file_name;
      const auto [known, is_new] = by_name_.emplace(name, samples_.size());
      if (!is_new) {
        join(known->second, {list, i}, file.part);
        continue;
      }
      try {
        samples_.push_back({name, shards::kNoLabel, file.part, tree_->size_of(name)});
        entries_.push_back({{{list, i}}});
      } catch (const Error& error) {
        if (error.blame() != Blame::user) throw;
        by_name_.erase(known);
        refused_.push_back({name, error.what()});
      }
    }
  }

  // The same image in another list.
  void join(size_t sample, ImageAt at, Part part) {
    if (samples_[sample].part != part) {
      const auto name_of = [](Part one) {
        return one == Part::open ? "no part" : text("part ", kPartNames[static_cast<size_t>(one)]);
      };
      const std::string& first = lists_[entries_[sample].images.front().list].source();
      throw Error(Blame::user,
                  text("the image ", base::quote_json(samples_[sample].name), " is in two parts: ", first, " (",
                       name_of(samples_[sample].part), ") and ", lists_[at.list].source(), " (", name_of(part), ")"),
                  "give the one list that is wanted as SOURCE, or keep only lists that share no image in the folder");
    }
    entries_[sample].images.push_back(at);
  }

  bool masks_;
  std::vector<base::MappedFile> texts_;
  std::vector<CocoList> lists_;
  std::unique_ptr<FileTree> tree_;
  std::map<std::string, int32_t> labels_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace

bool looks_like_coco(const SourceOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.path, error)) return !list_files(options.path).empty();
  if (options.path.extension() != ".json") return false;
  const base::MappedFile file(options.path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  return text.find("\"images\"") != std::string_view::npos && text.find("\"file_name\"") != std::string_view::npos;
}

std::unique_ptr<Source> open_coco(const SourceOptions& options) {
  return std::make_unique<CocoSource>(options);
}

}  // namespace lockstep::sources
