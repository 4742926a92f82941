// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/json.h"

namespace lockstep::base {

using Path = std::filesystem::path;

// The whole file. User error when it is missing, unreadable, a folder, or above `max_bytes`.
std::string read_file(const Path& path, uint64_t max_bytes = uint64_t{1} << 30);
Json read_json(const Path& path, const JsonLimits& limits = {});

// Writes to a temporary name in the same folder, fsyncs it, renames it over `path`, fsyncs the folder: readers see
// the old or the new content, never a part. Machine error (and no temporary left behind) when any of it fails.
void write_file(const Path& path, std::string_view content);
void write_file(const Path& path, std::span<const std::span<const std::byte>> parts);  // one after the other
void write_json(const Path& path, const Json& value);

void make_folders(const Path& path);
void fsync_folder(const Path& path);

// An open file for sequential writing; throws on every failed call, also on a failed fsync.
class FileWriter {
 public:
  enum class Mode { truncate, append };
  FileWriter(const Path& path, Mode mode);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  void sync();   // data is on the disk when this returns
  void close();  // reports what the destructor would have to swallow

 private:
  Path path_;
  int descriptor_ = -1;
};

// A read-only memory map of a whole file.
class MappedFile {
 public:
  explicit MappedFile(const Path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A folder of its own under the system's temporary folder, removed at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace lockstep::base
