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

// True when this errno is about the path itself (absent, not allowed, not a file): the user must act. Any other one
// (EIO, ESTALE, EMFILE, ...) is the machine's. Code that skips unreadable files must not skip those.
bool blames_the_path(int code);

// The whole file. User error when it is missing, unreadable, a folder, or above `max_bytes`; machine error when the
// file system fails, here and in all that reads. A pipe is read where a shell gives one (/dev/fd/63); one that lies in
// a folder is refused, because waiting for a writer could be forever.
std::string read_file(const Path& path, uint64_t max_bytes = uint64_t{1} << 30);
Json read_json(const Path& path, const JsonLimits& limits = {});
// The same in pieces, in order, without holding the whole file. A disk that fails meanwhile is a machine error that can
// be caught; under a memory map (MappedFile) it ends the process, with words.
void read_in_pieces(const Path& path, const std::function<void(std::span<const std::byte>)>& take);

// Writes to a temporary name in the same folder, fsyncs it, renames it over `path`, fsyncs the folder: readers see
// the old or the new content, never a part. Machine error (and no temporary left behind) when any of it fails. The
// temporary name is `path` + kTemporary + what nobody can guess, and never one that is there already. Into a device, or
// a pipe that somebody reads, it writes.
inline constexpr std::string_view kTemporary = ".tmp-";
void write_file(const Path& path, std::string_view content);
void write_file(const Path& path, std::span<const std::span<const std::byte>> parts);  // one after the other
void write_json(const Path& path, const Json& value);

void make_folders(const Path& path);
// The same, and syncs the parent of each folder that it made: the names survive a power failure. (A parent that may not
// be opened cannot be synced.)
void make_synced_folders(const Path& path);
void fsync_folder(const Path& path);

// The entries of the folder, in no order; none when there is no such folder. Machine error when it cannot be listed: an
// empty answer would look like an empty folder.
std::vector<Path> list_folder(const Path& path);
// Machine error when that cannot be told (EIO, ESTALE).
bool is_there(const Path& path);

// Opens a file that the program keeps in a folder where others may write too: -1 and errno as open(2), but a link is
// not followed, a pipe not waited for; user error where anything but a plain file has the name.
int open_plain(const Path& path, int flags, int mode = 0666);

// An open file for sequential writing; throws on every failed call, also on a failed fsync.
class FileWriter {
 public:
  // truncate: a new file in place of whatever has the name. append: open_plain().
  enum class Mode { truncate, append };
  FileWriter(const Path& path, Mode mode);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  // Writes all of it or nothing: what a full disk took is cut off again, unless another process has appended since.
  // REQUIRES: Mode::append.
  void write_whole(std::string_view bytes);
  void sync();   // data is on the disk when this returns
  void close();  // reports what the destructor would have to swallow

 private:
  friend void write_file(const Path& path, std::span<const std::span<const std::byte>> parts);
  FileWriter(const Path& path, int descriptor) : path_(path), descriptor_(descriptor) {}
  void cut_off(size_t bytes) const;

  Path path_;
  int descriptor_ = -1;
};

// A read-only memory map of a whole file. A page that the disk fails to read, or that is gone because the file was
// shortened, ends the process with words that name the file (mapping_guard.h). Where it must go on, use read_in_pieces.
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
