// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::run {
class BalancedOrder;
}  // namespace lockstep::run
namespace lockstep::shards {
class ShardSet;
}  // namespace lockstep::shards
namespace lockstep::task {
class Task;
}  // namespace lockstep::task

namespace lockstep::loader {

class Staging;

// A labelled collection: what there is, not yet any pixel. `id` is the index in `samples`, the same on every rank.
struct Sample {
  std::string path;  // empty in a synthetic collection and in shards: Store::name tells
  int32_t label = 0;

  bool operator==(const Sample&) const = default;
};

struct Collection {
  std::string root;
  std::vector<std::string> classes = {};  // label -> name, sorted
  std::vector<Sample> samples = {};       // sorted by class, then name below it; as they lie in shards
  int64_t num_ignored = 0;                // visible, and no image in a class folder
  std::string first_ignored = {};
  std::shared_ptr<const shards::ShardSet> shards = nullptr;  // where the samples lie; null: files of their own
  std::shared_ptr<Staging> staging = nullptr;                // copies on this node, used as they come; null: none
  bool synthetic = false;                                    // made by synthetic_collection(): noise, no files
  bool labelled = true;                                      // false: the classes are those of objects in the samples
  std::string classes_are = "classes of objects";            // where it is not labelled, for people
  std::string main_member = {};  // what stands in the place of images (Task::main_member); empty: nothing does
  std::shared_ptr<const std::vector<std::string>> sentences = nullptr;  // samples that lie in a list, "list.txt:12"

  bool is_synthetic() const { return synthetic; }

  // For people: the sample's path, or its shard's path and its name in it. REQUIRES: not synthetic
  std::string name_of(int64_t id) const;
  // SHA-256 over classes, names and labels, of shards their checksums, of files the sizes of 64; not the root: a resume
  // refuses another one, a moved folder is the same. Of files behind a "/" also that over the contents of those 64.
  std::string fingerprint() const;
};

// Of 1,024 files of their own, evenly spread, those that were written after `time`: images that were exchanged for
// others of the same name, or copied.
std::vector<std::string> files_newer_than(const Collection& collection, std::filesystem::file_time_type time);

// Each sub-folder of `root` is a class, the images (image::kImageNames, any case) in it, to any depth, are the samples;
// hidden files are passed over, links are followed. One listing per folder and no look at any file: fast on a shared
// file system.
// A folder with a list of shards (shards.json, as `prep` writes it) is opened as such: no listing, one look per shard.
// User error: a missing folder, no class folder, a class folder without an image (named), a part of a dataset in the
// place of a class or within one, links in a circle, shards without classes.
Collection scan_folder(const std::string& root);

// Labels by the names of `classes` (those of the training data), of which `root` may hold a part.
// User error for a class folder that is not among them.
Collection scan_folder(const std::string& root, const std::vector<std::string>& classes);

// A folder of shards whose samples have a class and this member in the place of an image (Task::main_member). User
// error for any other folder.
Collection scan_members(const std::string& root, const std::string& main_member,
                        const std::vector<std::string>& classes = {});

// True where the folder has a list of shards.
bool is_shard_folder(const std::string& root);

// All images of a folder of shards, or below a folder (by their names, sorted), whatever is known of their
// classes: every label is 0. For predictions, and for tasks whose samples have no class; `classes` are then those of
// the shards. User error for a folder without an image. `main_member`: as in scan_members, of shards alone.
Collection scan_images(const std::string& root, const std::string& main_member = "");

// Sentences of a list that is no shard, by their places in it ("list.txt:12"), for predictions. Every label is 0.
Collection sentence_collection(std::vector<std::string> places, std::vector<std::string> sentences);

// data.balance: rare classes more often. REQUIRES: 0 < balance <= 1, and samples with classes.
run::BalancedOrder balanced_order(const Collection& collection, double balance, int64_t seed);

// Of each sample the number of the smallest canvas that holds it (Task::canvas_of); of synthetic ones it is 0. User
// error for files of their own: only shards tell the sizes of images.
std::vector<int32_t> sample_canvases(const Collection& collection, const task::Task& task);

// "synthetic" data: `samples` random images of `classes` classes, no files; for plan and bench.
Collection synthetic_collection(int64_t samples, int64_t classes);

}  // namespace lockstep::loader
