// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::base {

using Path = std::filesystem::path;

// Whether a call that failed with this errno says something about its path (absent, not allowed, not a file), which is
// the user's to mend. Any other one (EIO, ESTALE, EMFILE, ...) is the machine's: who passes over what he cannot read
// must not pass over that.
bool blames_the_path(int code);

// The whole file. User error when it is missing, unreadable, a folder, or above `max_bytes`; machine error when the
// file system fails, here and in all that reads.
std::string read_file(const Path& path, uint64_t max_bytes = uint64_t{1} << 30);
Json read_json(const Path& path, const JsonLimits& limits = {});
// The same in pieces, in order, without holding it all. Where the disk fails on the way this is a machine error; a map
// (MappedFile) would end the process by SIGBUS.
void read_in_pieces(const Path& path, const std::function<void(std::span<const std::byte>)>& take);

// Writes to a temporary name in the same folder, fsyncs it, renames it over `path`, fsyncs the folder: readers see
// the old or the new content, never a part. Machine error (and no temporary left behind) when any of it fails.
void write_file(const Path& path, std::string_view content);
void write_file(const Path& path, std::span<const std::span<const std::byte>> parts);  // one after the other
void write_json(const Path& path, const Json& value);

void make_folders(const Path& path);
// Likewise, and syncs the folder above each one that it made: the names survive a power failure. (Where that folder may
// not be opened, nobody can sync it.)
void make_synced_folders(const Path& path);
void fsync_folder(const Path& path);

// What is in the folder, in no order; nothing when there is no such folder. Machine error when it cannot be listed: an
// empty answer then would be taken for an empty folder.
std::vector<Path> list_folder(const Path& path);
// Machine error when that cannot be told (EIO, ESTALE).
bool is_there(const Path& path);

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
  // All of it or nothing: what a full disk took of it is cut off again, unless another process has appended since.
  // REQUIRES: Mode::append.
  void write_whole(std::string_view bytes);
  void sync();   // data is on the disk when this returns
  void close();  // reports what the destructor would have to swallow

 private:
  void cut_off(size_t bytes) const;

  Path path_;
  int descriptor_ = -1;
};

// A read-only memory map of a whole file. A page that the disk does not give, or that is gone because somebody made the
// file shorter, ends the process by SIGBUS: not for what must be found damaged (read_in_pieces).
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
