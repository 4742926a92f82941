// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_kitti.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/sources/kitti_label.h"

namespace lockstep::sources {
namespace {

using base::text;

std::string kitti_prefix(const FileTree& tree) {
  for (const char* prefix : {"", "training/"}) {
    if (tree.has_folder(text(prefix, "image_2")) && tree.has_folder(text(prefix, "label_2"))) return prefix;
  }
  throw base::Error(base::Blame::user, text(tree.root().string(), ": no image_2 and label_2 in it"),
                    "give KITTI's folder 'training'");
}

constexpr int64_t kHeadBytes = int64_t{1} << 16;  // of an image: its size stands in front

// Boxes that are wrong in one way: how many, and the first.
struct OddBoxes {
  int64_t count = 0;
  std::string first = {};

  void add(const std::string& name) {
    if (count++ == 0) first = name;
  }
  void tell(const char* what, std::vector<std::string>& notes) const {
    if (count == 0) return;
    notes.push_back(text(count, count == 1 ? " box has " : " boxes have ", what, ", the first is ", first,
                         ": kept in the samples, no objects for training"));
  }
};

class KittiSource final : public Source {
 public:
  explicit KittiSource(const base::Path& root) : tree_(root), prefix_(kitti_prefix(tree_)) {
    classes_ = kitti_types();
    validate_share_ = 481.0 / 7481.0;
    FileTree::Listing listing = tree_.list(prefix_ + "image_2");
    refused_ = std::move(listing.refused);
    for (auto& file : listing.files) {
      if (!has_image_name(file.name)) {
        refused_.push_back({file.name, "no image"});
      } else if (!tree_.has_file(beside(file.name, "label_2"))) {
        refused_.push_back({file.name, "has no label"});
      } else {
        samples_.push_back({std::move(file.name), shards::kNoLabel, Part::open, file.size});
      }
    }
    look_at_boxes();
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const std::string& name = samples_[static_cast<size_t>(i)].name;
    std::string image = tree_.read(name);
    const image::ImageInfo info = image::read_image_info(std::as_bytes(std::span(image.data(), image.size())));
    if (info.orientation != 1)
      throw base::Error(base::Blame::user, "its EXIF orientation turns it away from its boxes and its calibration",
                        "store it as KITTI does, without EXIF");
    base::Json sample = base::Json::object();
    sample["image_id"] = base::Path(name).stem().string();
    sample["file_name"] = base::Path(name).filename().string();
    sample["width"] = info.width;
    sample["height"] = info.height;
    const std::string label = beside(name, "label_2"), calibration = beside(name, "calib");
    sample["objects"] = parse_kitti_labels(tree_.read(label), label);
    if (tree_.has_file(calibration))
      sample["calibration"] = parse_kitti_calibration(tree_.read(calibration), calibration);
    return {{"", std::move(image)}, {"json", sample.dump(-1)}};
  }

 private:
  // Boxes of which nothing can be learnt are told before anything is written. Labels and images that cannot be read are
  // told when they are packed.
  void look_at_boxes() {
    OddBoxes flat, outside;
    for (const auto& sample : samples_) {
      try {
        const std::string label = beside(sample.name, "label_2");
        const base::Json objects = parse_kitti_labels(tree_.read(label), label);
        look_at_boxes(objects, sample.name, label, flat, outside);
      } catch (const base::Error& error) {
        if (error.blame() != base::Blame::user) throw;
      }
    }
    flat.tell("no area", notes_);
    outside.tell("no part inside its image", notes_);
  }

  void look_at_boxes(const base::Json& objects, const std::string& image, const std::string& label, OddBoxes& flat,
                     OddBoxes& outside) const {
    std::optional<image::ImageInfo> info;
    for (size_t i = 0; i < objects.size(); ++i) {
      const base::Json& object = objects.items()[i];
      const auto& box = object.at("bbox").items();
      const double x = box[0].as_double(), y = box[1].as_double();
      const double right = x + box[2].as_double(), bottom = y + box[3].as_double();
      const std::string name = text(label, ", object ", i + 1, " (", object.at("category").as_string(), ")");
      if (right <= x || bottom <= y) {
        flat.add(name);
        continue;
      }
      if (!info) {
        const std::string start = tree_.read_start(image, kHeadBytes);
        info = image::read_image_info(std::as_bytes(std::span(start.data(), start.size())));
      }
      if (right <= 0 || bottom <= 0 || x >= static_cast<double>(info->width) ||
          y >= static_cast<double>(info->height)) {
        outside.add(name);
      }
    }
  }

  // The text file of an image: training/image_2/000001.png -> training/label_2/000001.txt.
  std::string beside(const std::string& image, const char* folder) const {
    const std::string stem = image.substr(prefix_.size() + sizeof "image_2" - 1);
    return text(prefix_, folder, stem.substr(0, stem.rfind('.')), ".txt");
  }

  FileTree tree_;
  std::string prefix_;
};

}  // namespace

bool looks_like_kitti(const SourceOptions& options) {
  std::error_code error;
  for (const char* prefix : {"", "training"}) {
    const base::Path at = options.path / prefix;
    if (std::filesystem::is_directory(at / "image_2", error) && std::filesystem::is_directory(at / "label_2", error))
      return true;
  }
  return false;
}

std::unique_ptr<Source> open_kitti(const SourceOptions& options) {
  return std::make_unique<KittiSource>(options.path);
}

}  // namespace lockstep::sources
