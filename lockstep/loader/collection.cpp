// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/collection.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/image/converter.h"
#include "lockstep/image/decode.h"
#include "lockstep/run/balanced_order.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/sources/source_folder.h"
#include "lockstep/task/task.h"

namespace lockstep::loader {
namespace {

using base::Blame;
using base::Error;
using base::text;

struct FolderId {
  dev_t device = 0;
  ino_t number = 0;

  bool operator==(const FolderId&) const = default;
};

struct Listing {
  FolderId id;
  std::vector<std::string> folders;
  std::vector<std::string> files;
  std::vector<std::string> others;  // pipes, sockets, devices: no sample, whatever their name
};

enum class Level { classes, within_a_class };
enum class EntryKind { folder, file, other };

EntryKind kind_of(mode_t mode) {
  return S_ISDIR(mode) ? EntryKind::folder : S_ISREG(mode) ? EntryKind::file : EntryKind::other;
}

// readdir tells the kind of most entries; only links (may be folders) and file systems that do not tell cost a stat.
// Within a class a link that is named as an image is taken for one, without a look at what it leads to.
EntryKind kind_of(const std::string& parent, const dirent& entry, Level level) {
  const bool may_be_folder =
      entry.d_type == DT_LNK && (level == Level::classes || !sources::has_image_name(entry.d_name));
  if (entry.d_type == DT_LNK && !may_be_folder) return EntryKind::file;
  if (entry.d_type != DT_UNKNOWN && !may_be_folder) return kind_of(DTTOIF(entry.d_type));
  struct stat status {};
  const std::string path = text(parent, "/", entry.d_name);
  if (::stat(path.c_str(), &status) == 0) return kind_of(status.st_mode);
  if (!base::blames_the_path(errno)) base::throw_errno(text("cannot look at ", path));
  return EntryKind::file;  // a link that leads nowhere, or where nobody may look
}

Listing list_folder(const std::string& path, Level level) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) {
    const int code = errno;
    if (code == ENOENT)
      throw Error(Blame::user, text(path, ": there is no such folder"),
                  "check data.train and data.validate of the job, or the folder that was given (eval: --data)");
    if (code == ENOTDIR) throw Error(Blame::user, text(path, ": this is a file, a folder of images is expected"));
    errno = code;
    base::throw_errno(text("cannot read the folder ", path),
                      text("check the permissions: ls -ld ", base::shell_path(path)));
  }
  struct stat status {};
  if (::fstat(::dirfd(folder.get()), &status) != 0) base::throw_errno(text("cannot read the folder ", path));
  Listing listing{.id = {status.st_dev, status.st_ino}, .folders = {}, .files = {}, .others = {}};
  while (const dirent* entry = sources::next_entry(folder.get(), path)) {
    if (entry->d_name[0] == '.') continue;
    const EntryKind kind = kind_of(path, *entry, level);
    auto& names = kind == EntryKind::folder ? listing.folders
                  : kind == EntryKind::file ? listing.files
                                            : listing.others;
    names.emplace_back(entry->d_name);
  }
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

struct ClassFiles {  // by their names below the class folder
  std::vector<std::string> files;
  std::vector<std::string> others;
};

// What is visible in a class folder, to any depth. `way` holds the folders that are entered.
void list_class(const std::string& folder, const std::string& below, std::vector<FolderId>& way, ClassFiles& all) {
  const std::string path = text(folder, "/", below);
  const Listing listing = list_folder(below.empty() ? folder : path.substr(0, path.size() - 1), Level::within_a_class);
  if (std::find(way.begin(), way.end(), listing.id) != way.end()) {
    throw Error(Blame::user, text(path, ": its links lead in a circle"), "remove the link");
  }
  way.push_back(listing.id);
  for (const auto& file : listing.files) all.files.push_back(below + file);
  for (const auto& other : listing.others) all.others.push_back(below + other);
  for (const auto& deeper : listing.folders) list_class(folder, text(below, deeper, "/"), way, all);
  way.pop_back();
}

// The first file that is left out; an image of another kind before any other, for somebody wants it read.
void note_ignored(std::string& first, const std::string& file) {
  const auto is_image = [](const std::string& name) {
    return !image::converter_for(sources::extension_of(name)).empty();
  };
  if (first.empty() || (!is_image(first) && is_image(file))) first = file;
}

// Notes the files that lie beside the class folders: no sample.
std::vector<std::string> class_folders(Collection& all) {
  const std::string& root = all.root;
  const Listing top = list_folder(root, Level::classes);
  all.num_ignored = std::ssize(top.files);
  for (const auto& file : top.files) note_ignored(all.first_ignored, text(root, "/", file));
  if (!top.folders.empty()) return top.folders;
  const auto num_images = std::count_if(top.files.begin(), top.files.end(), sources::has_image_name);
  const std::string found =
      num_images > 0 ? text("holds ", num_images, " images but no class folder") : std::string("holds no class folder");
  throw Error(Blame::user, text(root, ": ", found),
              "put the images of each class into a sub-folder named by the class");
}

void add_class(Collection& all, const std::string& name, int32_t label) {
  const std::string folder = text(all.root, "/", name);
  const size_t before = all.samples.size();
  int64_t ignored = 0;
  std::string first_ignored;
  std::vector<FolderId> way;
  ClassFiles listed;
  list_class(folder, "", way, listed);
  std::vector<std::string>& files = listed.files;
  std::sort(files.begin(), files.end());  // whole names, by their bytes: the order of prep --keep-order
  for (const auto& file : files) {
    if (sources::has_image_name(file)) {
      sources::refuse_part_in_class(all.root, text(name, "/", file), 0);
      all.samples.push_back({text(folder, "/", file), label});
    } else {
      ++ignored;
      note_ignored(first_ignored, text(folder, "/", file));
    }
  }
  ignored += std::ssize(listed.others);
  if (first_ignored.empty() && !listed.others.empty()) {
    first_ignored = text(folder, "/", *std::min_element(listed.others.begin(), listed.others.end()));
  }
  if (all.samples.size() == before) {
    std::error_code error;
    if (std::filesystem::exists(base::Path(folder) / shards::kShardList, error)) {
      throw Error(Blame::user, text(all.root, ": this dataset was made by lockstep prep, its parts lie below it"),
                  text("name the part, such as ", folder));
    }
    const std::string others = ignored ? text(" (", ignored, " other files, such as ", first_ignored, ")") : "";
    const std::string_view converter = image::converter_for(sources::extension_of(first_ignored));
    throw Error(Blame::user, text(folder, ": this class has no image", others),
                converter.empty() ? text("put images into it (", image::kImageNames, "), or remove the folder")
                                  : text("convert them: ", converter));
  }
  if (ignored > 0) note_ignored(all.first_ignored, first_ignored);
  all.num_ignored += ignored;
}

// Whether the sample is what is looked for: an image, or that member in its place.
bool has_main_member(const shards::ShardIndex& index, int64_t sample, const std::string& main_member) {
  return main_member.empty() ? index.sample(sample).image.has_value() : index.find(sample, main_member).has_value();
}

// What a sample lacks, for people.
std::string name_of_member(const std::string& main_member) {
  return main_member.empty() ? "image" : text("member '", main_member, "'");
}

// `classes` as the training data have them; empty: those of the shards.
Collection open_shards(const std::string& root, const std::vector<std::string>& classes,
                       const std::string& main_member = "") {
  const auto shards = std::make_shared<const shards::ShardSet>(root);
  const std::vector<std::string>& own = shards->classes();
  std::vector<int32_t> labels;
  for (size_t i = 0; i < own.size(); ++i) {
    const auto found = std::find(classes.begin(), classes.end(), own[i]);
    if (!classes.empty() && found == classes.end()) {
      throw Error(Blame::user, text(root, "/", shards::kShardList, ": the training data has no class '", own[i], "'"),
                  base::did_you_mean(own[i], classes));
    }
    labels.push_back(static_cast<int32_t>(classes.empty() ? static_cast<int64_t>(i) : found - classes.begin()));
  }
  Collection all{.root = root, .classes = classes.empty() ? own : classes};
  all.samples.reserve(static_cast<size_t>(shards->size()));
  for (int64_t shard = 0; shard < shards->num_shards(); ++shard) {
    const shards::ShardIndex& index = shards->index(shard);
    for (int64_t i = 0; i < index.size(); ++i) {
      const shards::IndexedSample sample = index.sample(i);
      const bool is_there = has_main_member(index, i, main_member);
      if (!is_there || sample.label < 0 || sample.label >= static_cast<int64_t>(labels.size())) {
        throw Error(Blame::user,
                    text(shards->tar_path(shard).string(), "/", sample.key, ": the sample has no ",
                         is_there ? "class" : name_of_member(main_member)),
                    main_member.empty() ? "classification takes shards of images with one class each"
                                        : "task text takes shards of sentences: lockstep prep sentences.csv --to DIR");
      }
      all.samples.push_back({"", labels[static_cast<size_t>(sample.label)]});
    }
  }
  all.shards = shards;
  all.main_member = main_member;
  return all;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::vector<std::string> images_below(const std::string& folder) {
  std::vector<std::string> images;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (item.is_regular_file() && sources::has_image_name(item.path().filename().string()))
      images.push_back(item.path().string());
  }
  if (images.empty()) throw Error(Blame::user, text(folder, ": no ", image::kImageNames, " file in this folder"));
  std::sort(images.begin(), images.end());
  return images;
}

void refuse_plain_folder(const std::string& root, const std::string& main_member) {
  if (main_member.empty() || is_shard_folder(root)) return;
  throw Error(Blame::user, text(root, ": no shards of sentences (", shards::kShardList, ")"),
              "make them of a table of sentences and labels: lockstep prep sentences.csv --to DIR, then DIR/train");
}

}  // namespace

bool is_shard_folder(const std::string& root) {
  return ::access(text(root, "/", shards::kShardList).c_str(), F_OK) == 0;
}

Collection scan_members(const std::string& root, const std::string& main_member,
                        const std::vector<std::string>& classes) {
  refuse_plain_folder(root, main_member);
  return open_shards(without_trailing_slashes(root), classes, main_member);
}

Collection sentence_collection(std::vector<std::string> places, std::vector<std::string> sentences) {
  base::ensure(places.size() == sentences.size(), "a place for each sentence");
  Collection all{.root = "", .main_member = "txt"};
  for (auto& place : places) all.samples.push_back({std::move(place), 0});
  all.sentences = std::make_shared<const std::vector<std::string>>(std::move(sentences));
  return all;
}

Collection scan_images(const std::string& root, const std::string& main_member) {
  refuse_plain_folder(root, main_member);
  Collection all{.root = without_trailing_slashes(root), .main_member = main_member};
  if (!is_shard_folder(root)) {
    for (auto& path : images_below(root)) all.samples.push_back({std::move(path), 0});
    return all;
  }
  const auto shards = std::make_shared<const shards::ShardSet>(all.root);
  for (int64_t id = 0; id < shards->size(); ++id) {
    const auto [shard, position] = shards->position_of(id);
    if (has_main_member(shards->index(shard), position, main_member)) continue;
    throw Error(Blame::user, text(shards->tar_path(shard).string(), "/", shards->index(shard).sample(position).key,
                                  ": the sample has no ", name_of_member(main_member)));
  }
  all.samples.resize(static_cast<size_t>(shards->size()));
  all.classes = shards->classes();
  all.labelled = false;
  all.shards = shards;
  return all;
}

Collection scan_folder(const std::string& root) {
  if (is_shard_folder(root)) return open_shards(without_trailing_slashes(root), {});
  Collection all{.root = without_trailing_slashes(root)};
  all.classes = class_folders(all);
  for (size_t i = 0; i < all.classes.size(); ++i) add_class(all, all.classes[i], static_cast<int32_t>(i));
  return all;
}

Collection scan_folder(const std::string& root, const std::vector<std::string>& classes) {
  if (is_shard_folder(root)) return open_shards(without_trailing_slashes(root), classes);
  Collection all{.root = without_trailing_slashes(root), .classes = classes};
  for (const auto& name : class_folders(all)) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw Error(Blame::user, text(all.root, "/", name, ": the training data has no class '", name, "'"),
                  base::did_you_mean(name, classes));
    }
    add_class(all, name, static_cast<int32_t>(found - classes.begin()));
  }
  return all;
}

run::BalancedOrder balanced_order(const Collection& collection, double balance, int64_t seed) {
  std::vector<int32_t> labels;
  labels.reserve(collection.samples.size());
  for (const Sample& sample : collection.samples) labels.push_back(sample.label);
  return {labels, balance, seed};
}

std::vector<int32_t> sample_canvases(const Collection& collection, const task::Task& task) {
  std::vector<int32_t> all(collection.samples.size());
  if (collection.is_synthetic()) return all;
  if (!collection.shards) {
    throw Error(Blame::user, text(collection.root, " is no folder of shards, which tell the sizes of their images"),
                "lockstep prep makes shards of it; or leave out instances.canvases");
  }
  for (size_t id = 0; id < all.size(); ++id) {
    const auto at = collection.shards->position_of(static_cast<int64_t>(id));
    const auto image = collection.shards->index(at.shard).sample(at.sample).image;
    if (image) all[id] = static_cast<int32_t>(task.canvas_of(image->info.width, image->info.height));
  }
  return all;
}

Collection synthetic_collection(int64_t samples, int64_t classes) {
  if (samples < 1) {
    throw Error(Blame::user, text("synthetic data of ", samples, " samples"), "set data.samples, for example 10000");
  }
  Collection all{.root = "synthetic", .synthetic = true};
  const std::string last = std::to_string(std::max<int64_t>(classes - 1, 0));
  for (int64_t i = 0; i < classes; ++i) {  // zero-padded, so that the names are sorted
    const std::string number = std::to_string(i);
    all.classes.push_back(text("class", std::string(last.size() - number.size(), '0'), number));
  }
  all.samples.resize(static_cast<size_t>(samples));
  for (int64_t i = 0; i < samples; ++i) {  // in blocks, sorted by class like a folder
    all.samples[static_cast<size_t>(i)].label = static_cast<int32_t>(i * classes / samples);
  }
  return all;
}

std::string Collection::name_of(int64_t id) const {
  if (!shards) return samples.at(static_cast<size_t>(id)).path;
  const auto [shard, position] = shards->position_of(id);
  const shards::ShardIndex& index = shards->index(shard);
  const shards::IndexedSample sample = index.sample(position);
  const std::string_view extension = index.member(position, sample.image ? sample.image->member : 0).extension;
  return text(shards->tar_path(shard).string(), "/", sample.key, ".", extension);
}

namespace {

// Another set under the same names differs in nearly every size; all of them would cost a call for each file, which
// takes minutes on a network file system.
constexpr int64_t kFilesLookedAt = 64;

// At most `count` of 0 .. total - 1, evenly spread.
std::vector<int64_t> spread(int64_t total, int64_t count) {
  count = std::min(total, count);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(i * total / count);
  return chosen;
}

// Empty for what cannot be read: a sample that is bad is bad each time.
std::string content_sha256(const std::string& path) {
  try {
    const std::string content = sources::read_plain_file(path);
    return base::sha256_hex(std::as_bytes(std::span(content.data(), content.size())));
  } catch (const Error& error) {
    if (error.blame() != Blame::user) throw;
    return "";
  }
}

}  // namespace

std::string Collection::fingerprint() const {
  base::Sha256 hash;
  const auto add = [&hash](std::string_view part) {  // length first: no two lists of names look the same
    hash.update(text(part.size(), ":"));
    hash.update(part);
  };
  for (const auto& name : classes) add(name);
  for (int64_t shard = 0; shards && shard < shards->num_shards(); ++shard) {
    add(text(shards->tar_path(shard).filename().string(), " ", shards->index(shard).tar_crc32c()));
  }
  for (const auto& sample : samples) {
    const std::string_view path = sample.path;
    add(path.starts_with(root) ? path.substr(root.size()) : path);
    add(std::to_string(sample.label));
  }
  if (shards || synthetic) return hash.hex();
  const std::vector<int64_t> looked_at = spread(std::ssize(samples), kFilesLookedAt);
  for (const int64_t id : looked_at) {
    std::error_code gone;
    add(std::to_string(std::filesystem::file_size(samples[static_cast<size_t>(id)].path, gone)));
  }
  base::Sha256 contents;
  for (const int64_t id : looked_at) contents.update(content_sha256(samples[static_cast<size_t>(id)].path));
  return text(hash.hex(), "/", contents.hex());
}

std::vector<std::string> files_newer_than(const Collection& collection, std::filesystem::file_time_type time) {
  constexpr int64_t kMostLookedAt = 1024;  // about a second on a slow file system
  std::vector<std::string> newer;
  if (collection.shards || collection.synthetic) return newer;
  for (const int64_t id : spread(std::ssize(collection.samples), kMostLookedAt)) {
    const std::string& path = collection.samples[static_cast<size_t>(id)].path;
    std::error_code gone;
    const auto written = std::filesystem::last_write_time(path, gone);
    if (!gone && written > time) newer.push_back(path);
  }
  return newer;
}

}  // namespace lockstep::loader
