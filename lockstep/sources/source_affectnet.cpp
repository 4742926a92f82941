// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_affectnet.h"

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/sources/npy.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

class AffectNetSource final : public Source {
 public:
  explicit AffectNetSource(const base::Path& root) : tree_(root) {
    classes_ = affectnet_classes();
    for (const auto& folder : tree_.folders()) {
      if (const Part part = part_named(folder); part != Part::open) add_part(folder, part);
    }
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const std::string& name = samples_[static_cast<size_t>(i)].name;
    std::vector<SourceMember> members{{"", tree_.read(name)}};
    base::Json others = base::Json::object();
    for (const auto& [key, suffix] : {std::pair{"valence", "val"}, std::pair{"arousal", "aro"}}) {
      if (tree_.has_file(annotation(name, suffix))) others[key] = number(annotation(name, suffix));
    }
    if (others.size() > 0) members.push_back({"json", others.dump(-1)});
    if (const std::string landmarks = annotation(name, "lnd"); tree_.has_file(landmarks))
      members.push_back({"lnd.npy", tree_.read(landmarks)});
    return members;
  }

 private:
  // "train_set/images/7.jpg" -> "train_set/annotations/7_exp.npy"
  static std::string annotation(const std::string& image, const char* suffix) {
    const std::string folder = image.substr(0, image.find('/'));
    return text(folder, "/annotations/", base::Path(image).stem().string(), "_", suffix, ".npy");
  }

  double number(const std::string& name) const { return npy_number(tree_.read(name), name); }

  void add_part(const std::string& folder, Part part) {
    FileTree::Listing listing = tree_.list(text(folder, "/images"));
    refused_.insert(refused_.end(), listing.refused.begin(), listing.refused.end());
    for (auto& file : listing.files) {
      if (!has_image_name(file.name)) {
        refused_.push_back({file.name, text("no ", image::kImageNames, " file")});
        continue;
      }
      try {
        const double emotion = number(annotation(file.name, "exp"));
        const bool is_known = emotion >= 0 && emotion < static_cast<double>(classes_.size());  // not of NaN either
        if (!is_known || emotion != std::floor(emotion))
          throw Error(Blame::user, text("emotion ", emotion, " is none of the classes"));
        samples_.push_back({std::move(file.name), static_cast<int32_t>(emotion), part, file.size});
      } catch (const Error& error) {
        if (error.blame() != Blame::user) throw;
        refused_.push_back({file.name, error.what()});
      }
    }
  }

  FileTree tree_;
};

}  // namespace

const std::vector<std::string>& affectnet_classes() {
  static const std::vector<std::string> kClasses = {"Neutral", "Happy",   "Sad",   "Surprise",
                                                    "Fear",    "Disgust", "Anger", "Contempt"};
  return kClasses;
}

bool looks_like_affectnet(const SourceOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_directory(options.path, error)) return false;
  const FileTree tree(options.path);
  return tree.has_folder("train_set/images") && tree.has_folder("train_set/annotations");
}

std::unique_ptr<Source> open_affectnet(const SourceOptions& options) {
  return std::make_unique<AffectNetSource>(options.path);
}

}  // namespace lockstep::sources
