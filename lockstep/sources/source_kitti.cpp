// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_kitti.h"

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
