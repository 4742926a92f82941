// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/loader/collection.h"

namespace lockstep::loader {

// Where the bytes of a sample lie: its image, and the members that are read with it.
struct Location {
  static constexpr int64_t kWholeFile = -1;

  int64_t file = 0;  // Store::path(file): the shard, or the image's own file
  int64_t offset = 0;
  int64_t size = kWholeFile;  // of a file of its own nobody has asked for the size

  bool operator==(const Location&) const = default;
};

// The bytes of the samples of a collection, in files of their own or in shards. Calls may come from any thread.
// After open_store no call asks the file system about a single image of a shard: no open, no stat.
class Store {
 public:
  virtual ~Store() = default;

  virtual std::string path(int64_t file) const = 0;
  virtual Location locate(int64_t id) const = 0;
  // For people: the path, or the shard's path and the member's name in it.
  virtual std::string name(int64_t id) const = 0;
  // The sample's bytes, in `memory` (which serves from one call to the next). User error when they cannot be read or
  // the checksum tells that they have changed; it names the sample.
  virtual std::span<const std::byte> read(int64_t id, std::vector<std::byte>& memory) const = 0;
  // The image within what was read, then the members that the store was opened for, in that order.
  virtual std::vector<std::span<const std::byte>> split(int64_t id, std::span<const std::byte> bytes) const = 0;
  // User error unless the bytes are what the index says of them.
  virtual void check(int64_t, std::span<const std::byte>) const {}

  // Of shards, open from the beginning to the end: where the bytes of a file are read now, its copy on this node once
  // there is one. -1 for files of their own.
  virtual int descriptor(int64_t) const { return -1; }
  // The copy of the file is damaged: it is read from its source again. True also for a caller that comes later with
  // bytes of the copy; false: there never was a copy.
  virtual bool forget_copy(int64_t) const { return false; }
  // The most that decoding an image holds at once, and the largest file of one; 0: nobody knows.
  virtual int64_t largest_image() const { return 0; }
  virtual int64_t largest_file() const { return 0; }
};

// With its image each sample gives its `members`, by extension: "json". In a shard they lie beside it; of an image in a
// file of its own they are the files of the same name with that extension. User error for a sample that has none.
// `collection` must outlive the store. REQUIRES: not a synthetic one.
std::unique_ptr<Store> open_store(const Collection& collection, std::vector<std::string> members = {});

}  // namespace lockstep::loader
