// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_pets.h"

#include <charconv>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/sources/text_table.h"
#include "lockstep/sources/turned_objects.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int kMaxBreeds = 100000;

std::span<const std::byte> in_memory(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

// The trimap as it lies on its image as seen; byte for byte where nothing has to be turned. User error for a damaged
// one, and one of another image.
std::string trimap_for(const std::string& image, std::string file) {
  image::Image trimap = image::decode_image(in_memory(file));
  const int orientation = orientation_of_list(image::read_image_info(in_memory(image)), trimap.width, trimap.height);
  if (orientation == 1) return file;
  for (size_t i = 0; i < trimap.pixels.size(); i += 3) {
    const bool is_grey = trimap.pixels[i] == trimap.pixels[i + 1] && trimap.pixels[i] == trimap.pixels[i + 2];
    if (!is_grey)
      throw Error(Blame::user, "its trimap has colours, and has to be turned with its image", "make it grey");
  }
  return image::encode_png(image::orient(std::move(trimap), orientation));
}

class PetSource final : public Source {
 public:
  explicit PetSource(const SourceOptions& options) : tree_(options.path), masks_(options.masks) {
    const bool has_test = tree_.has_file("annotations/test.txt");
    const bool has_own = tree_.has_file("annotations/trainval.txt");
    if (has_own) read_list("annotations/trainval.txt", has_test ? Part::train : Part::open);
    if (has_test) read_list("annotations/test.txt", Part::test);
    if (!has_own && !has_test) read_list("annotations/list.txt", Part::open);
    name_classes();
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const std::string& name = samples_[static_cast<size_t>(i)].name;
    std::vector<SourceMember> members{{"", tree_.read(name)}};
    if (masks_) {
      const std::string file = text("annotations/trimaps/", base::Path(name).stem().string(), ".png");
      members.push_back({kLabelImage, trimap_for(members.front().bytes, tree_.read(file))});
    }
    return members;
  }

 private:
  // Lists may hold some breeds only: labels are positions among those that are there, in the order of their numbers.
  void name_classes() {
    std::map<int32_t, int32_t> positions;
    for (const auto& [number, name] : breeds_) {
      positions[number] = static_cast<int32_t>(classes_.size());
      classes_.push_back(name);
    }
    for (auto& sample : samples_) sample.label = positions.at(sample.label);
  }

  void read_list(const std::string& name, Part part) {
    const TextTable table(tree_.read(name), (tree_.root() / name).string(), TextTable::Header::none);
    const auto add = [&](const std::vector<std::string>& cells, const std::string& where) {
      int number = 0;
      const bool numeric =
          cells.size() >= 2 &&
          std::from_chars(cells[1].data(), cells[1].data() + cells[1].size(), number).ec == std::errc();
      if (!numeric || number < 1 || number > kMaxBreeds) {
        throw Error(Blame::user, text(where, ": expected an image and its class from 1"), "Abyssinian_100 1 1 1");
      }
      const std::string breed = cells[0].substr(0, cells[0].rfind('_'));
      const auto [known, is_new] = breeds_.emplace(number, breed);
      if (known->second != breed)
        throw Error(Blame::user, text(where, ": class ", number, " is ", known->second, ", not ", breed));
      const std::string image = text("images/", cells[0], ".jpg");
      try {
        samples_.push_back({image, number, part, tree_.size_of(image)});  // name_classes() makes it a label
      } catch (const Error& error) {
        if (error.blame() != Blame::user) throw;
        refused_.push_back({image, error.what()});
      }
    };
    for (int64_t i = 0; i < table.size(); ++i) add(table.row(i), table.where(i));
  }

  FileTree tree_;
  bool masks_;
  std::map<int, std::string> breeds_;
};

}  // namespace

bool looks_like_pets(const SourceOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_directory(options.path / "images", error)) return false;
  const FileTree tree(options.path);
  return tree.has_file("annotations/trainval.txt") || tree.has_file("annotations/test.txt") ||
         tree.has_file("annotations/list.txt");
}

std::unique_ptr<Source> open_pets(const SourceOptions& options) {
  return std::make_unique<PetSource>(options);
}

}  // namespace lockstep::sources
