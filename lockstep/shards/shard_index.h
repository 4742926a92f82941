// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/image/decode.h"

namespace lockstep::shards {

// The binary index beside a shard (shard-000000.sxi), memory-mapped: docs/formats/shards.md has its grammar.
constexpr int32_t kNoLabel = -1;

struct IndexedMember {         // one file of a sample
  std::string_view extension;  // "jpg", "cls", "json"
  int64_t offset = 0;          // of its bytes in the tar file
  int64_t size = 0;
  uint32_t crc32c = 0;

  bool operator==(const IndexedMember&) const = default;
};

struct IndexedImage {
  int64_t member = 0;  // which of the sample's members
  image::ImageInfo info;
  bool progressive = false;

  bool operator==(const IndexedImage&) const = default;
};

struct IndexedSample {
  std::string_view key;
  int32_t label = kNoLabel;
  uint64_t content_hash = 0;  // of the image as its source had it; 0 when unknown
  int64_t num_members = 0;
  std::optional<IndexedImage> image = {};
  // Of a baseline JPEG with a restart marker after each row of MCUs: where in the file the entropy-coded data of each
  // row begins (behind SOS for the first, behind its RSTn marker for the others). Empty for all other images.
  std::span<const uint32_t> row_offsets = {};
};

// Views point into the index and live as long as it does. Calls may come from any thread.
class ShardIndex {
 public:
  // Checks all of it once, so that later calls need no checks. User error that names the file: damaged (CRC-32C),
  // truncated, of another version, or pointing outside of its tar file.
  explicit ShardIndex(const base::Path& path);
  // `bytes` must outlive the index. REQUIRES: aligned to 8 bytes
  ShardIndex(std::span<const std::byte> bytes, std::string source);

  int64_t size() const { return num_samples_; }
  int64_t tar_bytes() const { return tar_bytes_; }
  uint32_t tar_crc32c() const { return tar_crc32c_; }
  int64_t largest_image() const { return largest_image_; }  // bytes that decoding it holds at once
  int64_t largest_file() const { return largest_file_; }    // bytes of an image's file
  IndexedSample sample(int64_t i) const;
  IndexedMember member(int64_t i, int64_t k) const;
  std::optional<IndexedMember> find(int64_t i, std::string_view extension) const;

 private:
  void open();
  void check_sample(int64_t i);
  [[noreturn]] void fail(const std::string& what) const;

  std::optional<base::MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::string source_;
  int64_t num_samples_ = 0;
  int64_t num_members_ = 0;
  int64_t num_rows_ = 0;
  int64_t tar_bytes_ = 0;
  uint32_t tar_crc32c_ = 0;
  int64_t largest_image_ = 0;
  int64_t largest_file_ = 0;
  const std::byte* samples_ = nullptr;
  const std::byte* members_ = nullptr;
  const uint32_t* rows_ = nullptr;
  std::string_view strings_;
};

// Puts an index together, sample by sample.
class ShardIndexBuilder {
 public:
  // The next sample, its members follow by add_member. `sample.num_members` is not read.
  void add_sample(const IndexedSample& sample);
  void add_member(const IndexedMember& member);
  std::string bytes(int64_t tar_bytes, uint32_t tar_crc32c) const;
  int64_t size() const { return num_samples_; }

 private:
  uint32_t string_at(std::string_view word);

  int64_t num_samples_ = 0;
  int64_t num_members_ = 0;
  std::string samples_;
  std::string members_;
  std::vector<uint32_t> rows_;
  std::string strings_;
  std::vector<std::pair<std::string, uint32_t>> extensions_;
};

}  // namespace lockstep::shards
