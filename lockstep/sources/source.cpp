// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/sources/radar/source_radar.h"
#include "lockstep/sources/source_affectnet.h"
#include "lockstep/sources/source_arrays.h"
#include "lockstep/sources/source_captions.h"
#include "lockstep/sources/source_coco.h"
#include "lockstep/sources/source_folder.h"
#include "lockstep/sources/source_hdf5.h"
#include "lockstep/sources/source_kitti.h"
#include "lockstep/sources/source_labels.h"
#include "lockstep/sources/source_pets.h"
#include "lockstep/sources/source_sentences.h"
#include "lockstep/sources/source_table.h"
#include "lockstep/sources/source_webdataset.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

struct Kind {
  const char* name;
  const char* help;
  bool (*looks_like)(const SourceOptions& options);
  std::unique_ptr<Source> (*open)(const SourceOptions& options);
};

// In the order in which a path is tried: the more particular layouts first.
constexpr Kind kKinds[] = {
    {"kitti", "KITTI object: [training/]image_2, label_2, calib", looks_like_kitti, open_kitti},
    {"pets", "Oxford-IIIT Pet: images/, annotations/trainval.txt, test.txt", looks_like_pets, open_pets},
    {"affectnet", "AffectNet: {train,val}_set/images and annotations/*_exp.npy", looks_like_affectnet, open_affectnet},
    {"coco", "COCO JSON, or a folder with annotations/instances_*.json", looks_like_coco, open_coco},
    {"labels", "label images: VOC's JPEGImages, SegmentationClass; or images/ and labels/", looks_like_labels,
     open_labels},
    {"sentences", "CSV, TSV, JSON (lines) of sentence and label, without images", looks_like_sentences, open_sentences},
    {"captions", "TSV, CSV, JSON (lines) of image and caption; DIR with one captions.*", looks_like_captions,
     open_captions},
    {"webdataset", "tar files of KEY.jpg, KEY.cls, KEY.json, ...", looks_like_webdataset, open_webdataset},
    {"radar", "NEXRAD Level II, ODIM-HDF5 or DX files to sequences; arrays of frames", looks_like_radar, open_radar},
    {"mnist", "train-images-idx3-ubyte and its kin, also .gz", looks_like_mnist, open_mnist},
    {"cifar", "CIFAR-10 or CIFAR-100, binary version", looks_like_cifar, open_cifar},
    {"npy", "arrays: x.npy with y.npy; *_train.npy, *_test.npy", looks_like_npy, open_npy},
    {"hdf5", "HDF5 arrays: images with labels, train/x with train/y", looks_like_hdf5, open_hdf5},
    {"table", "CSV or TSV of path, label, more; AffectNet and RAF-DB folders", looks_like_table, open_table},
    {"folder", "DIR/<class>/*.jpg, or DIR/{train,val,test}/<class>/*.jpg", looks_like_image_folder, open_image_folder},
};

void check_masks(const SourceOptions& options, const Kind& kind) {
  if (!options.masks || kind.open == open_coco || kind.open == open_pets) return;
  throw Error(Blame::user, text("--masks: ", kind.name, " has no outlines"),
              "leave --masks out; coco and pets have them");
}

// A newcomer's folder: what is missing is the class of each image.
[[noreturn]] void refuse_layout(const base::Path& path, const std::vector<std::string>& names) {
  const std::string others = text("other layouts: --format ", base::join(names, ", "));
  std::vector<base::Path> entries{path};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) entries = base::list_folder(path);
  const auto images = std::count_if(entries.begin(), entries.end(),
                                    [](const base::Path& entry) { return has_image_name(entry.native()); });
  if (images > 0) {
    throw Error(Blame::user,
                text(path.string(), ": ", images == 1 ? "an image" : text(images, " images"),
                     ", and nothing says of which class"),
                text("put the images of each class into a folder of its name (DIR/cat/1.jpg, DIR/dog/2.jpg) and give "
                     "DIR, or write a list, \"image,label\" and a row for each, as a .csv file beside them; ",
                     others));
  }
  const auto packed =
      std::find_if(entries.begin(), entries.end(), [](const base::Path& entry) { return entry.extension() == ".npz"; });
  if (packed != entries.end()) {
    throw Error(Blame::user, text(packed->string(), ": arrays in a zip file"),
                text("unpack it, x.npy and y.npy are read: unzip ", base::shell_path(packed->string()), " -d DIR"));
  }
  throw Error(Blame::user,
              text(path.string(), entries.empty() ? ": the folder is empty" : ": no known layout, no image in it"),
              text("check SOURCE; ", others));
}

}  // namespace

void Source::note_list(std::string_view content) {
  const auto sum = base::crc32c(std::as_bytes(std::span(content.data(), content.size())));
  list_sums_ += text(list_sums_.empty() ? "" : " ", sum);
}

Part part_named(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const char* known : {"train", "training", "trainset", "restval"}) {
    if (word == known) return Part::train;
  }
  for (const char* known :
       {"val", "valid", "validate", "validation", "valset", "dev", "eval", "evaluation", "minival", "publictest"}) {
    if (word == known) return Part::validate;
  }
  for (const char* known : {"test", "testing", "testset", "privatetest"}) {
    if (word == known) return Part::test;
  }
  return Part::open;
}

Part named_part(std::string_view word, const std::string& where) {
  if (const Part part = part_named(word); part != Part::open) return part;
  throw Error(
      Blame::user, text(where, ": ", base::quote_json(std::string(word)), " is no part of a dataset"),
      "call the parts train, validate (val, dev, eval) or test; or --split-column none, and prep splits by itself");
}

std::vector<SourceFormat> source_formats() {
  std::vector<SourceFormat> formats;
  for (const auto& kind : kKinds) formats.push_back({kind.name, kind.help});
  return formats;
}

bool is_radar(const SourceOptions& options) {
  return options.format == "radar" || (options.format.empty() && looks_like_radar(options));
}

OpenedSource open_source(const SourceOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(options.path, error)) {
    throw Error(Blame::user, text(options.path.string(), ": there is no such folder or file"), "check SOURCE");
  }
  std::vector<std::string> names;
  for (const auto& kind : kKinds) {
    names.emplace_back(kind.name);
    if (options.format.empty() ? kind.looks_like(options) : options.format == kind.name) {
      check_masks(options, kind);
      return {kind.name, kind.open(options)};
    }
  }
  if (!options.format.empty()) {
    throw Error(Blame::user, text("--format knows no '", options.format, "'"),
                base::did_you_mean(options.format, names));
  }
  refuse_layout(options.path, names);
}

}  // namespace lockstep::sources
