// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/mapping_guard.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

struct stat status_of(int descriptor, const Path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw_errno(text("cannot stat ", path.string()));
  return status;
}

Path folder_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

// A shell's <(command) and standard input; elsewhere somebody made it, perhaps to have us wait.
bool is_of_the_shell(const Path& path) {
  return path.native().starts_with("/dev/") || path.native().starts_with("/proc/");
}

int open_for_reading(const Path& path) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor >= 0) {
    Descriptor opened(descriptor);
    if (S_ISFIFO(status_of(descriptor, path).st_mode) && !is_of_the_shell(path)) {
      throw Error(Blame::user, text(path.string(), ": this is a pipe, a file is expected"),
                  "give a file; what a command prints: <(command)");
    }
    ::fcntl(descriptor, F_SETFL, 0);  // O_NONBLOCK was for open() alone
    return opened.release();
  }
  if (!blames_the_path(errno)) throw_errno(text("cannot open ", path.string()));
  const bool missing = errno == ENOENT || errno == ENOTDIR;
  const std::string reason = missing ? "there is no such file" : "cannot open it";
  const std::string detail = missing ? "" : text(" (", std::generic_category().message(errno), ")");
  throw Error(Blame::user, text(path.string(), ": ", reason, detail),
              missing ? "check the path" : "check the permissions: ls -l");
}

uint64_t size_of(int descriptor, const Path& path) {
  const struct stat status = status_of(descriptor, path);
  if (!S_ISDIR(status.st_mode)) return static_cast<uint64_t>(status.st_size);
  throw Error(Blame::user, text(path.string(), ": this is a folder, a file is expected"));
}

// 0 at the end of the file.
size_t read_some(int descriptor, std::span<std::byte> into, const Path& path) {
  while (true) {
    const ssize_t got = ::read(descriptor, into.data(), into.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw_errno(text("cannot read ", path.string()));
  }
}

// A file system may be full of files with bytes to spare. Leaves errno alone.
bool has_no_inodes(const std::string& folder) {
  const int code = errno;
  struct statvfs status {};
  const bool known = ::statvfs(folder.c_str(), &status) == 0;
  errno = code;
  return known && status.f_files > 0 && status.f_favail == 0;
}

std::string write_fix(const Path& path) {
  const std::string folder = folder_of(path).string();
  const std::string shell_folder = shell_path(folder);
  if (errno == ENOSPC && has_no_inodes(folder)) {
    return text("free some space: remove files, there are no inodes left: df -i ", shell_folder, "; quota -s");
  }
  if (errno == ENOSPC || errno == EDQUOT) return text("free some space: df -h ", shell_folder, "; quota -s");
  if (errno == EFBIG) return "files may not grow that large here: ulimit -f unlimited, or ask the site";
  if (errno == EROFS || errno == EACCES) return text("choose a folder you may write to; ls -ld ", shell_folder);
  if (errno == ENOENT && ::access(folder.c_str(), F_OK) != 0) return text("make the folder: mkdir -p ", shell_folder);
  return "";
}

void sync_folder(int descriptor, const Path& folder) {
  // Some network file systems refuse to sync a folder (EINVAL); their rename is already synchronous.
  if (descriptor < 0 || (::fsync(descriptor) != 0 && errno != EINVAL))
    throw_errno(text("cannot sync the folder ", folder.string()));
}

[[noreturn]] void throw_cannot_open(const Path& path) {
  const std::string fix = write_fix(path);
  throw_errno(text("cannot open ", path.string(), " for writing"), fix);
}

[[noreturn]] void throw_not_plain(const Path& path, const char* kind) {
  throw Error(
      Blame::user, text(path.string(), ": this is ", kind, ", a plain file is expected"),
      text("somebody put it there: ls -l ", shell_path(path.string()), "; remove it, or choose another folder"));
}

std::string unguessable() {
  uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) throw_errno("cannot get random bytes");
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(bits));
  return digits;
}

// /dev/null, a shell's >(command): a rename would put a file in its place. -1: a plain file, or nothing yet.
int open_device(const Path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode)) return -1;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && errno == ENXIO) throw_not_plain(path, "a pipe that nobody reads");
  if (descriptor < 0) throw_cannot_open(path);
  ::fcntl(descriptor, F_SETFL, 0);
  return descriptor;
}

}  // namespace

bool blames_the_path(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

std::string read_file(const Path& path, uint64_t max_bytes) {
  const Descriptor file(open_for_reading(path));
  const uint64_t expected = size_of(file.get(), path);
  std::string content;
  content.reserve(expected);
  std::vector<char> buffer(1 << 16);  // threads may have a small stack
  while (const size_t got = read_some(file.get(), std::as_writable_bytes(std::span(buffer)), path)) {
    content.append(buffer.data(), got);
    if (content.size() > max_bytes) {
      throw Error(Blame::user, text(path.string(), ": more than ", max_bytes, " bytes"), "is this the right file?");
    }
  }
  return content;
}

void read_in_pieces(const Path& path, const std::function<void(std::span<const std::byte>)>& take) {
  const Descriptor file(open_for_reading(path));
  size_of(file.get(), path);  // a folder is refused
  std::vector<std::byte> buffer(kPiece);
  while (const size_t got = read_some(file.get(), buffer, path)) take(std::span(buffer).first(got));
}

Json read_json(const Path& path, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.max_bytes), path.string(), limits);
}

void make_folders(const Path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return;
  errno = error.value();
  const std::string fix = write_fix(path);
  throw_errno(text("cannot make the folder ", path.string()), fix);
}

void make_synced_folders(const Path& path) {
  std::vector<Path> made;
  for (Path folder = path; !folder.empty() && !is_there(folder); folder = folder.parent_path()) made.push_back(folder);
  make_folders(path);
  for (auto folder = made.rbegin(); folder != made.rend(); ++folder) {
    const Path above = folder->has_parent_path() ? folder->parent_path() : Path(".");
    if (::access(above.c_str(), R_OK) == 0) fsync_folder(above);
  }
}

std::vector<Path> list_folder(const Path& path) {
  std::vector<Path> all;
  std::error_code error;
  std::filesystem::directory_iterator item(path, error);
  for (; !error && item != std::filesystem::directory_iterator(); item.increment(error)) all.push_back(item->path());
  if (!error || error.value() == ENOENT || error.value() == ENOTDIR) return all;
  errno = error.value();
  throw_errno(text("cannot list ", path.string()));
}

bool is_there(const Path& path) {
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  if (!error) return there;
  errno = error.value();
  throw_errno(text("cannot see ", path.string()));
}

void fsync_folder(const Path& path) {
  const Path folder = path.empty() ? Path(".") : path;
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  sync_folder(descriptor.get(), folder);
}

void write_file(const Path& path, std::string_view content) {
  const std::span<const std::byte> whole = std::as_bytes(std::span(content.data(), content.size()));
  write_file(path, std::span(&whole, 1));
}

void write_file(const Path& path, std::span<const std::span<const std::byte>> parts) {
  if (const int device = open_device(path); device >= 0) {
    FileWriter file(path, device);
    for (const auto& part : parts) file.write(part);
    return;
  }
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name = path.filename().string();
  const std::string temporary = text(name, kTemporary, unguessable());
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int descriptor = folder.get() < 0 ? -1 : ::openat(folder.get(), temporary.c_str(), flags, 0666);
  if (descriptor < 0) throw_cannot_open(path);
  FileWriter file(path, descriptor);
  try {
    for (const auto& part : parts) file.write(part);
    file.sync();
    file.close();
    if (::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0)
      throw_errno(text("cannot rename to ", path.string()));
  } catch (...) {
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    throw;
  }
  sync_folder(folder.get(), folder_of(path));
}

void write_json(const Path& path, const Json& value) {
  write_file(path, value.dump() + "\n");
}

int open_plain(const Path& path, int flags, int mode) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0 && errno == ELOOP) throw_not_plain(path, "a link");
  if (descriptor < 0 && errno == ENXIO) throw_not_plain(path, "a pipe or a socket");
  if (descriptor < 0) return -1;
  Descriptor opened(descriptor);
  if (!S_ISREG(status_of(descriptor, path).st_mode)) throw_not_plain(path, "a pipe or a device");
  ::fcntl(descriptor, F_SETFL, flags & O_APPEND);  // O_NONBLOCK was for open() alone
  return opened.release();
}

FileWriter::FileWriter(const Path& path, Mode mode) : path_(path) {
  if (mode == Mode::append) {
    descriptor_ = open_plain(path, O_WRONLY | O_CREAT | O_APPEND);
  } else {
    const auto create = [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); };
    descriptor_ = create();
    if (descriptor_ < 0 && errno == EEXIST && ::unlink(path.c_str()) == 0) descriptor_ = create();
  }
  if (descriptor_ < 0) throw_cannot_open(path);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const std::string fix = write_fix(path_);
      throw_errno(text("cannot write ", path_.string()), fix);
    }
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void FileWriter::write_whole(std::string_view bytes) {
  size_t done = 0;
  for (int calls = 0; done < bytes.size(); ++calls) {
    const ssize_t put = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int code = errno;
      if (calls == 1) cut_off(done);  // of several calls another's bytes may lie between
      errno = code;
      const std::string fix = write_fix(path_);
      throw_errno(text("cannot write ", path_.string()), fix);
    }
    done += static_cast<size_t>(put);
  }
}

// Making a file shorter needs no space. The position is the end of what this process wrote last: when the file goes on
// behind it, that is another's.
void FileWriter::cut_off(size_t bytes) const {
  struct stat status {};
  const off_t end = ::lseek(descriptor_, 0, SEEK_CUR);
  if (bytes == 0 || end < 0 || ::fstat(descriptor_, &status) != 0 || status.st_size != end) return;
  static_cast<void>(::ftruncate(descriptor_, end - static_cast<off_t>(bytes)) == 0);
}

void FileWriter::sync() {
  if (::fsync(descriptor_) == 0) return;
  const std::string fix = write_fix(path_);
  throw_errno(text("cannot sync ", path_.string()), fix);
}

void FileWriter::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_errno(text("cannot close ", path_.string()));
}

MappedFile::MappedFile(const Path& path) {
  const Descriptor file(open_for_reading(path));
  size_ = size_of(file.get(), path);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) throw_errno(text("cannot map ", path.string()));
  data_ = static_cast<const std::byte*>(address);
  note_mapping(data_, size_, path.string());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (!data_) return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = text(base && *base ? base : "/tmp", "/lockstep-XXXXXX");
  if (!::mkdtemp(pattern.data())) {
    const std::string fix =
        errno == ENOENT || errno == ENOTDIR ? "name a folder that is here: export TMPDIR=/tmp" : write_fix(pattern);
    throw_errno(text("cannot make a temporary folder ", pattern), fix);
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::base
