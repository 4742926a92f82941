// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_folder.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/image/converter.h"
#include "lockstep/image/decode.h"
#include "lockstep/site/command.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

bool is_part(const std::string& name) {
  return part_named(name) != Part::open;
}

// Whether the folders that hold images are parts. User error for a part (with folders in it: "train" alone may be a
// class, beside "bus" and "ship") among others: the others would become classes, and so would the parts.
bool has_parts(const FileTree& tree, const FileTree::Listing& listing) {
  std::set<std::string> tops, deep;
  for (const auto& file : listing.files) {
    const size_t end = file.name.find('/');
    if (!has_image_name(file.name) || end == std::string::npos) continue;
    tops.insert(file.name.substr(0, end));
    if (file.name.find('/', end + 1) != std::string::npos) deep.insert(file.name.substr(0, end));
  }
  const auto other = std::find_if_not(tops.begin(), tops.end(), is_part);
  if (other == tops.end()) return !tops.empty();
  const auto part = std::find_if(deep.begin(), deep.end(), is_part);
  if (part == deep.end()) return false;
  throw Error(Blame::user,
              text(tree.root().string(), ": ", *part, " is named as a part of a dataset, ", *other, " is not"),
              "parts are train, validate (val) and test, with the classes in them; move what is none of them away");
}

class ImageFolder final : public Source {
 public:
  explicit ImageFolder(const SourceOptions& options) : tree_(options.path) {
    const base::Path& root = options.path;
    FileTree::Listing listing = tree_.list();
    const bool has_parts = sources::has_parts(tree_, listing);
    refused_ = std::move(listing.refused);
    std::map<std::string, int32_t> labels;
    for (const auto& file : listing.files) {
      if (has_image_name(file.name) && !class_of(file.name, has_parts).empty()) labels[class_of(file.name, has_parts)];
    }
    for (auto& [name, label] : labels) {
      label = static_cast<int32_t>(classes_.size());
      classes_.push_back(name);
    }
    if (classes_.empty()) {
      refuse_links(root);
      refuse_other_images(root, listing);
      throw Error(Blame::user, text(root.string(), ": no folder of images in it"),
                  "put the images of each class into a sub-folder named by the class");
    }
    refuse_empty_classes(has_parts);
    if (!has_parts && options.format.empty()) look_for_classes_below(listing);
    for (auto& file : listing.files) {
      const std::string name = class_of(file.name, has_parts);
      if (!has_image_name(file.name)) {
        if (options.format.empty()) refuse_list_of_one_class(file.name);
        leave_out(file.name);
      } else if (name.empty()) {
        refused_.push_back({file.name, "lies in no class folder"});
      } else {
        refuse_part_in_class(tree_.root(), file.name, has_parts ? file.name.find('/') + 1 : 0);
        const Part part = has_parts ? part_named(file.name.substr(0, file.name.find('/'))) : Part::open;
        samples_.push_back({std::move(file.name), labels.at(name), part, file.size});
      }
    }
    // By whole names "cat-small/" comes before "cat/": by the class first, as training from the folder has them.
    const auto position = [&](const SourceSample& sample) {
      const std::string_view top = has_parts ? std::string_view(sample.name).substr(0, sample.name.find('/')) : "";
      return std::pair(top, sample.label);
    };
    std::stable_sort(samples_.begin(), samples_.end(),
                     [&](const SourceSample& a, const SourceSample& b) { return position(a) < position(b); });
  }

  std::vector<SourceMember> load(int64_t i) const override {
    return {{"", tree_.read(samples_[static_cast<size_t>(i)].name)}};
  }

 private:
  struct ClassFolder {
    bool has_images = false;  // right in it
    std::set<std::string> folders;
  };

  // Folders of images within class folders are merged into their class: right for "cat/day_1", wrong one level too
  // high, where "photos/cat" and "photos/dog" become the class "photos".
  void look_for_classes_below(const FileTree::Listing& listing) {
    std::map<std::string, ClassFolder> tops;
    std::map<std::string, int64_t> times;  // that a folder's name stands below a class
    for (const auto& file : listing.files) {
      const size_t top = file.name.find('/');
      if (!has_image_name(file.name) || top == std::string::npos) continue;
      ClassFolder& folder = tops[file.name.substr(0, top)];
      const size_t end = file.name.find('/', top + 1);
      const std::string below = end == std::string::npos ? "" : file.name.substr(top + 1, end - top - 1);
      if (is_part(below)) return;  // refuse_part_in_class says more
      if (below.empty())
        folder.has_images = true;
      else if (folder.folders.insert(below).second)
        ++times[below];
    }
    const bool some_have_images =
        std::any_of(tops.begin(), tops.end(), [](const auto& top) { return top.second.has_images; });
    for (const auto& [name, folder] : tops) {
      if (folder.has_images || folder.folders.size() < 2) continue;
      const bool repeats = std::any_of(folder.folders.begin(), folder.folders.end(), [&](const std::string& below) {
        return times[below] > 1 || tops.contains(below);
      });
      if (tops.size() > 1 && !some_have_images && !repeats) continue;  // persons, days, sites: the classes' own
      tell_of_classes_below(name, folder.folders, tops.size() == 1);
    }
  }

  void tell_of_classes_below(const std::string& name, const std::set<std::string>& folders, bool is_only_class) {
    std::vector<std::string> first(folders.begin(),
                                   std::next(folders.begin(), std::min<int64_t>(std::ssize(folders), 3)));
    const std::string what = text("the class ", base::quote_json(name), " is made of ", folders.size(), " folders (",
                                  base::join(first, ", "), first.size() < folders.size() ? ", ...)" : ")");
    const std::string command = site::shell_words({"lockstep", "prep", (tree_.root() / name).string(), "--to", "DIR"});
    if (!is_only_class) {
      return notes_.push_back(text(what, ", whose images are merged; if these are the classes: ", command));
    }
    throw Error(Blame::user, text(tree_.root().string(), ": one class only; ", what),
                text("if these are the classes: ", command, "; or --format folder for images of one class"));
  }

  // No image. A list comes first among what is left out: somebody may have meant its labels, not the folders' names.
  void leave_out(const std::string& file) {
    const std::string extension = extension_of(file);
    const bool is_list = file.find('/') == std::string::npos && (extension == "csv" || extension == "tsv");
    if (!is_list) {
      const std::string_view converter = image::converter_for(extension);
      const std::string fix = converter.empty() ? "" : text("; convert it: ", converter);
      return refused_.push_back({file, text("no ", image::kImageNames, " file", fix)});
    }
    refused_.insert(refused_.begin(),
                    {file, text("a list that is not used: the folders' names are the classes; for its "
                                "labels: lockstep prep ",
                                base::shell_path((tree_.root() / file).string()), " --to DIR")});
  }

  // One class and a list beside it: the list tells more of the images than the name of their folder.
  void refuse_list_of_one_class(const std::string& file) const {
    const std::string extension = extension_of(file);
    const bool is_list = extension == "json" || extension == "jsonl" || extension == "csv" || extension == "tsv";
    if (classes_.size() > 1 || !is_list || file.find('/') != std::string::npos || file == "dataset.json") return;
    throw Error(Blame::user,
                text(tree_.root().string(), ": one class only, ", base::quote_json(classes_.front()),
                     ", and a list beside it: ", file),
                text("give the list: lockstep prep ", base::shell_path((tree_.root() / file).string()),
                     " --to DIR; or --format folder for images of one class"));
  }

  // Training from the folder refuses these; here they are named, for the labels of the others depend on them.
  void refuse_empty_classes(bool has_parts) {
    const auto look_into = [this](const std::string& folder) {
      for (const auto& name : tree_.folders(folder)) {
        if (!std::binary_search(classes_.begin(), classes_.end(), name))
          refused_.push_back({folder.empty() ? name : text(folder, "/", name), "a class without images"});
      }
    };
    if (!has_parts) return look_into("");
    for (const auto& part : tree_.folders()) {
      if (is_part(part)) look_into(part);
    }
  }

  // Nothing was found, and links were passed over: these are the reason.
  void refuse_links(const base::Path& root) const {
    const auto is_link = [](const Refused& one) { return one.reason.starts_with(kLinkReason); };
    const auto first = std::find_if(refused_.begin(), refused_.end(), is_link);
    if (first == refused_.end()) return;
    throw Error(Blame::user,
                text(root.string(), ": no folder of images in it; ", std::count_if(first, refused_.end(), is_link),
                     " links were refused, the first is ", first->name, " (", first->reason, ")"),
                text("a source is read within its own folder: copy what the links lead to: cp -rL ",
                     base::shell_path(root.string()), " COPY"));
  }

  // Nothing was found but images of another kind, as phones and cameras write them.
  static void refuse_other_images(const base::Path& root, const FileTree::Listing& listing) {
    const auto converter = [](const auto& file) { return image::converter_for(extension_of(file.name)); };
    const auto is_other = [&](const auto& file) { return !converter(file).empty(); };
    const auto first = std::find_if(listing.files.begin(), listing.files.end(), is_other);
    if (first == listing.files.end()) return;
    throw Error(
        Blame::user,
        text(root.string(), ": no ", image::kImageNames, " file in it, but ",
             std::count_if(first, listing.files.end(), is_other), " images of other kinds, such as ", first->name),
        text("convert them: ", converter(*first)));
  }

  // The folder that names the class; empty when the file lies above such a folder.
  static std::string class_of(const std::string& name, bool has_parts) {
    const size_t begin = has_parts ? name.find('/') + 1 : 0;
    const size_t end = name.find('/', begin);
    return end == std::string::npos ? "" : name.substr(begin, end - begin);
  }

  FileTree tree_;
};

}  // namespace

void refuse_part_in_class(const base::Path& root, const std::string& name, size_t class_begin) {
  const size_t class_end = name.find('/', class_begin), folder_end = name.find('/', class_end + 1);
  if (folder_end == std::string::npos) return;  // right in its class, which may be "train", the vehicle
  const std::string folder = name.substr(class_end + 1, folder_end - class_end - 1);
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const bool within = is_part(folder) && std::all_of(folder.begin(), folder.end(), is_letter);  // not "train_01"
  if (!within && !is_part(name.substr(class_begin, class_end - class_begin))) return;
  const base::Path path = root / name.substr(0, within ? folder_end : class_end);
  throw Error(Blame::user,
              text(path.string(), ": it is named as a part of a dataset and lies ",
                   within ? "within" : "in the place of", " a class"),
              text("train on the part, ", path.string(), "; prepare the folder that holds the parts, ",
                   path.parent_path().string(), "; a folder within a class needs another name"));
}

bool looks_like_image_folder(const SourceOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_directory(options.path, error)) return false;
  const FileTree tree(options.path);
  if (!tree.folders().empty()) return true;
  const std::vector<Refused> refused = tree.list().refused;  // links in the place of folders: refused with that word
  return std::any_of(refused.begin(), refused.end(),
                     [](const Refused& one) { return one.reason.starts_with(kLinkReason); });
}

std::unique_ptr<Source> open_image_folder(const SourceOptions& options) {
  return std::make_unique<ImageFolder>(options);
}

}  // namespace lockstep::sources
