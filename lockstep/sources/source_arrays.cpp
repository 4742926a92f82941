// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_arrays.h"

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/sources/npy.h"
#include "lockstep/sources/zlib_door.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

constexpr int64_t kMaxClasses = 100000;

// Pixels [height, width, channels] or, as CIFAR has them, [channels, height, width].
std::string png_of(const std::byte* bytes, int64_t height, int64_t width, int64_t channels, bool planes) {
  image::Image image(width, height);
  for (int64_t i = 0; i < width * height; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      const int64_t channel = std::min(c, channels - 1);
      image.pixels[static_cast<size_t>(3 * i + c)] =
          static_cast<uint8_t>(bytes[planes ? channel * width * height + i : channels * i + channel]);
    }
  }
  return image::encode_png(image);
}

// The files of a folder that are there, of these.
std::vector<Path> present(const Path& folder, const std::vector<std::string>& names) {
  std::vector<Path> found;
  std::error_code error;
  for (const auto& name : names) {
    if (std::filesystem::is_regular_file(folder / name, error)) found.push_back(folder / name);
  }
  return found;
}

Part part_in(const std::string& stem) {
  const size_t at = stem.find_last_of("_-");
  return at == std::string::npos ? Part::open : part_named(stem.substr(at + 1));
}

class NpySource final : public Source {
 public:
  explicit NpySource(const Path& path) {
    int64_t num_classes = 0;
    for (const auto& file : array_files(path)) {
      Block block{file.filename().string(), base::MappedFile(file), {}};
      block.header = read_npy_header(block.file.bytes(), file.string());
      if (block.header.shape.empty())
        throw Error(Blame::user, text(file.string(), ": the array has no axis of samples"));
      std::vector<int32_t> labels = labels_of(file, block.header.count());
      for (int64_t i = 0; i < block.header.count(); ++i) {
        const int32_t label = labels.empty() ? shards::kNoLabel : labels[static_cast<size_t>(i)];
        num_classes = std::max<int64_t>(num_classes, label + 1);
        samples_.push_back(
            {text(block.name, "#", i), label, part_in(file.stem().string()), block.header.slice_bytes()});
        rows_.push_back({blocks_.size(), i});
      }
      blocks_.push_back(std::move(block));
    }
    classes_ = number_names(num_classes);
  }

  static std::vector<Path> array_files(const Path& path) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return {path};
    std::vector<std::string> names;
    for (const char* stem : {"x", "X", "images", "data"}) {
      for (const char* part : {"", "_train", "_val", "_valid", "_test"}) names.push_back(text(stem, part, ".npy"));
    }
    return present(path, names);
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const auto [number, row] = rows_[static_cast<size_t>(i)];
    const Block& block = blocks_[number];
    const auto bytes = static_cast<size_t>(block.header.slice_bytes());
    const char* at = reinterpret_cast<const char*>(block.file.bytes().data()) + block.header.data_offset +
                     row * block.header.slice_bytes();
    return {array_member(block.header.type, std::span(block.header.shape).subspan(1), {at, bytes})};
  }

 private:
  struct Block {
    std::string name;
    base::MappedFile file;
    NpyHeader header;
  };
  struct RowAt {
    size_t block;
    int64_t row;
  };

  [[noreturn]] static void refuse_labels(const std::string& path, const NpyHeader& header, int64_t count) {
    std::vector<std::string> sizes;
    for (const int64_t size : header.shape) sizes.push_back(text(size));
    const bool rows = header.shape.size() == 2 && header.count() == count;
    const bool fractions = header.shape.size() == 1 && header.count() == count;
    throw Error(Blame::user,
                text(path, ": ", count, " whole numbers are expected, one a sample; this is ", header.type, " of ",
                     base::join(sizes, " x ")),
                rows        ? "of rows with a 1 at the class: numpy.save(FILE, y.argmax(1))"
                : fractions ? "of classes: numpy.save(FILE, y.astype('int64')); numbers to be learnt stand in a list "
                              "(CSV) beside the images: --label-column none, then task regress"
                            : "save as many labels as samples");
  }

  // y_train.npy for x_train.npy, labels.npy for images.npy.
  static std::vector<int32_t> labels_of(const Path& file, int64_t count) {
    const std::string stem = file.stem().string();
    const size_t cut = std::min(stem.find_last_of("_-"), stem.size());
    const std::string part = part_in(stem) == Part::open ? "" : stem.substr(cut);
    for (const auto& path : present(file.parent_path(), {text("y", part, ".npy"), text("Y", part, ".npy"),
                                                         text("labels", part, ".npy"), text(stem, "_labels.npy")})) {
      if (path == file) continue;
      const base::MappedFile labels(path);
      const NpyHeader header = read_npy_header(labels.bytes(), path.string());
      if (header.type[0] == 'f' || header.count() != count || header.slice_bytes() != header.item_bytes) {
        refuse_labels(path.string(), header, count);
      }
      std::vector<int32_t> all;
      for (int64_t i = 0; i < count; ++i)
        all.push_back(checked_label(npy_integer(labels.bytes(), header, i), path.string(), i));
      return all;
    }
    return {};
  }

  std::vector<Block> blocks_;
  std::vector<RowAt> rows_;
};

constexpr size_t kMaxUnpacked = size_t{1} << 33;

// A file's bytes, mapped, or unpacked into memory when its name ends in .gz.
class PlainBytes {
 public:
  explicit PlainBytes(const Path& path) : file_(path) {
    if (path.extension() == ".gz") unpacked_ = gunzip(file_.bytes(), kMaxUnpacked, path.string());
  }
  std::span<const std::byte> bytes() const {
    return unpacked_ ? std::as_bytes(std::span(unpacked_->data(), unpacked_->size())) : file_.bytes();
  }

 private:
  base::MappedFile file_;
  std::optional<std::string> unpacked_;
};

// The names under which people keep one of MNIST's files: "images-idx3-ubyte" of the part "train".
std::vector<std::string> mnist_names(const std::string& part, const std::string& what, const std::string& kind) {
  const std::string dashed = text(part, "-", what, "-", kind), dotted = text(part, "-", what, ".", kind);
  return {dashed, dotted, dashed + ".gz", dotted + ".gz"};
}

// MNIST and its kin: big-endian sizes behind a magic number that tells type and number of axes.
class MnistSource final : public Source {
 public:
  explicit MnistSource(const Path& folder) {
    for (const auto& [prefix, part] :
         {std::pair<const char*, Part>{"train", Part::train}, {"t10k", Part::test}, {"test", Part::test}}) {
      const auto images = present(folder, mnist_names(prefix, "images", "idx3-ubyte"));
      const auto labels = present(folder, mnist_names(prefix, "labels", "idx1-ubyte"));
      if (!images.empty() && !labels.empty()) add(images[0], labels[0], part);
    }
    classes_ = number_names(num_classes_);
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const auto [number, row] = rows_[static_cast<size_t>(i)];
    const Block& block = blocks_[number];
    return {{"png", png_of(block.file.bytes().data() + 16 + row * block.height * block.width, block.height, block.width,
                           1, false)}};
  }

 private:
  struct Block {
    PlainBytes file;
    int64_t height;
    int64_t width;
  };
  struct RowAt {
    size_t block;
    int64_t row;
  };

  static int64_t word(std::span<const std::byte> bytes, size_t at) {
    int64_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<int64_t>(bytes[at + i]);
    return value;
  }

  void add(const Path& images, const Path& labels, Part part) {
    PlainBytes file(images);
    const PlainBytes label_file(labels);
    const auto bytes = file.bytes(), label_bytes = label_file.bytes();
    const bool sane =
        bytes.size() >= 16 && label_bytes.size() >= 8 && word(bytes, 0) == 0x803 && word(label_bytes, 0) == 0x801;
    if (!sane) throw Error(Blame::user, text(images.string(), ": not in MNIST's format"), "fetch the file again");
    const int64_t count = word(bytes, 4), height = word(bytes, 8), width = word(bytes, 12);
    constexpr int64_t kMostPixels = 1 << 24;  // of one image: with 32 bits of count no product overflows
    if (height < 1 || width < 1 || height > kMostPixels / width ||
        count * height * width > static_cast<int64_t>(bytes.size()) - 16 || word(label_bytes, 4) != count ||
        count > static_cast<int64_t>(label_bytes.size()) - 8) {
      throw Error(Blame::user, text(images.string(), ": the file is shorter than it says, or has not as many labels"));
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto label = static_cast<int32_t>(label_bytes[static_cast<size_t>(8 + i)]);
      num_classes_ = std::max<int64_t>(num_classes_, label + 1);
      samples_.push_back({text(images.filename().string(), "#", i), label, part, height * width});
      rows_.push_back({blocks_.size(), i});
    }
    blocks_.push_back({std::move(file), height, width});
  }

  std::vector<Block> blocks_;
  std::vector<RowAt> rows_;
  int64_t num_classes_ = 0;
};

const std::vector<std::string> kCifar10Train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                "data_batch_4.bin", "data_batch_5.bin"};

// Records of one label byte (CIFAR-100: coarse, fine) and 3,072 bytes in three planes of 32 x 32.
class CifarSource final : public Source {
 public:
  explicit CifarSource(const Path& folder) {
    const bool is_100 = !present(folder, {"train.bin"}).empty();
    num_labels_ = is_100 ? 2 : 1;
    for (const auto& path : present(folder, is_100 ? std::vector<std::string>{"train.bin"} : kCifar10Train))
      add(path, Part::train);
    for (const auto& path : present(folder, {is_100 ? "test.bin" : "test_batch.bin"})) add(path, Part::test);
    for (const auto& path : present(folder, {is_100 ? "fine_label_names.txt" : "batches.meta.txt"})) {
      for (const auto& line : base::split(base::read_file(path, 1 << 20), '\n')) {
        if (const auto name = base::trim(line); !name.empty()) classes_.emplace_back(name);
      }
    }
    if (static_cast<int64_t>(classes_.size()) < num_classes_) classes_ = number_names(num_classes_);
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const auto [number, row] = rows_[static_cast<size_t>(i)];
    return {{"png", png_of(files_[number].bytes().data() + row * record() + num_labels_, 32, 32, 3, true)}};
  }

 private:
  struct RowAt {
    size_t file;
    int64_t row;
  };
  int64_t record() const { return num_labels_ + 3072; }

  void add(const Path& path, Part part) {
    const base::MappedFile& file = files_.emplace_back(path);
    const auto size = static_cast<int64_t>(file.bytes().size());
    if (size == 0 || size % record() != 0)
      throw Error(Blame::user, text(path.string(), ": not a whole number of ", record(), " bytes"),
                  "fetch the binary version again");
    for (int64_t i = 0; i < size / record(); ++i) {
      const auto label = static_cast<int32_t>(file.bytes()[static_cast<size_t>(i * record() + num_labels_ - 1)]);
      num_classes_ = std::max<int64_t>(num_classes_, label + 1);
      samples_.push_back({text(path.filename().string(), "#", i), label, part, 3072});
      rows_.push_back({files_.size() - 1, i});
    }
  }

  std::vector<base::MappedFile> files_;
  std::vector<RowAt> rows_;
  int64_t num_labels_ = 1;
  int64_t num_classes_ = 0;
};

}  // namespace

std::vector<std::string> number_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

int32_t checked_label(int64_t label, const std::string& source, int64_t i) {
  if (label >= 0 && label < kMaxClasses) return static_cast<int32_t>(label);
  throw Error(Blame::user, text(source, ": label ", label, " of sample ", i, " is out of range"),
              text("labels are 0 to ", kMaxClasses - 1, ": correct it, or take the sample out"));
}

SourceMember array_member(const std::string& type, std::span<const int64_t> shape, std::string_view bytes) {
  const int64_t channels = shape.size() == 3 ? shape[2] : 1;
  const bool is_image = type == "u1" && (shape.size() == 2 || (shape.size() == 3 && (channels == 1 || channels == 3)));
  if (!is_image || shape[0] < 1 || shape[1] < 1 || shape[0] > image::kMaxPixels / shape[1])
    return {"npy", npy_file(type, shape, bytes)};
  return {"png", png_of(reinterpret_cast<const std::byte*>(bytes.data()), shape[0], shape[1], channels, false)};
}

bool looks_like_npy(const SourceOptions& options) {
  std::error_code error;
  if (std::filesystem::is_regular_file(options.path, error)) return options.path.extension() == ".npy";
  return !NpySource::array_files(options.path).empty();
}

std::unique_ptr<Source> open_npy(const SourceOptions& options) {
  return std::make_unique<NpySource>(options.path);
}

bool looks_like_mnist(const SourceOptions& options) {
  return !present(options.path, mnist_names("train", "images", "idx3-ubyte")).empty() ||
         !present(options.path, mnist_names("t10k", "images", "idx3-ubyte")).empty();
}

std::unique_ptr<Source> open_mnist(const SourceOptions& options) {
  return std::make_unique<MnistSource>(options.path);
}

bool looks_like_cifar(const SourceOptions& options) {
  return !present(options.path, {"data_batch_1.bin", "test_batch.bin"}).empty() ||
         present(options.path, {"train.bin", "fine_label_names.txt"}).size() == 2;
}

std::unique_ptr<Source> open_cifar(const SourceOptions& options) {
  return std::make_unique<CifarSource>(options.path);
}

}  // namespace lockstep::sources
