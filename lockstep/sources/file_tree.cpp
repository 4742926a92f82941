// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/file_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

bool leads_up(const std::string& name) {
  if (name.starts_with('/')) return true;
  const std::vector<std::string> parts = base::split(name, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

std::string reason_of(int code) {
  switch (code) {
    case EXDEV:
      return kLeadsOut;
    case ENOENT:
      return "there is no such file";
    case ELOOP:
      return "its links lead in a circle";
    default:
      return std::error_code(code, std::generic_category()).message();
  }
}

bool is_absence(int code) {
  return code == ENOENT || code == ENOTDIR || code == EXDEV || code == ELOOP;
}

// What the file is, or allows. Every other error is the file system's (EIO, ESTALE, EMFILE, ...) and may pass: a sample
// must not be left out for it.
bool is_of_the_file(int code) {
  return base::blames_the_path(code) || is_absence(code) || code == EINVAL || code == EILSEQ || code == ENXIO ||
         code == ENODEV;
}

void throw_unless_of_the_file(const base::Path& path) {
  if (!is_of_the_file(errno)) base::throw_errno(text("cannot open ", path.string()));
}

// A plain file and its status; user error for what is none or cannot be opened, machine error for what may not be.
void check_plain(const OpenFile& file, const base::Path& root, const std::string& name, struct stat& status) {
  if (file.get() < 0 && (errno == EACCES || errno == EPERM)) {  // passes with a chmod, like a disk's error
    base::throw_errno(text("cannot open ", (root / name).string()),
                      "make it readable: chmod u+r; or take it out of the source; then the same command goes on");
  }
  if (file.get() < 0) {
    throw_unless_of_the_file(root / name);
    throw Error(Blame::user, text(name, ": ", reason_of(errno)));
  }
  if (::fstat(file.get(), &status) != 0) base::throw_errno(text("cannot look at ", (root / name).string()));
  if (!S_ISREG(status.st_mode)) throw Error(Blame::user, text(name, ": this is no file"));
}

// Of an open plain file.
std::string read_all(const OpenFile& file, const struct stat& status, const base::Path& path) {
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) base::throw_errno(text("cannot read ", path.string()));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  content.resize(done);
  return content;
}

// Kernels before 5.6 and some containers have no openat2: the resolved path tells as well, with more calls.
int open_resolved(const base::Path& root, const std::string& name, int flags) {
  std::error_code error;
  const base::Path resolved = std::filesystem::canonical(root / name, error);
  if (error) {
    errno = error.value();
    return -1;
  }
  const std::string inside = root == "/" ? "/" : root.string() + "/";
  if (resolved != root && !resolved.string().starts_with(inside)) {
    errno = EXDEV;
    return -1;
  }
  return ::open(resolved.c_str(), flags);
}

int open_beneath(int root, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH;
  return static_cast<int>(::syscall(SYS_openat2, root, name.empty() ? "." : name.c_str(), &how, sizeof how));
}

}  // namespace

const dirent* next_entry(DIR* entries, const base::Path& folder) {
  errno = 0;
  const dirent* entry = ::readdir(entries);
  if (!entry && errno != 0) base::throw_errno(text("cannot read the folder ", folder.string()));
  return entry;
}

std::string extension_of(std::string_view name) {
  const std::string_view file = name.substr(name.rfind('/') + 1);
  const size_t dot = file.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "";
  std::string extension(file.substr(dot + 1));
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool has_image_name(std::string_view name) {
  return image::is_image_extension(extension_of(name));
}

std::string read_plain_file(const base::Path& path, uint64_t max_bytes) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  while (descriptor < 0 && errno == EINTR);
  const OpenFile file(descriptor);
  if (file.get() < 0 && errno != ENXIO) return base::read_file(path, max_bytes);  // says why it cannot be opened
  struct stat status {};
  if (file.get() >= 0 && ::fstat(file.get(), &status) != 0) base::throw_errno(text("cannot stat ", path.string()));
  if (!S_ISREG(status.st_mode)) {
    throw Error(Blame::user, text(path.string(), ": this is ", S_ISDIR(status.st_mode) ? "a folder" : kNoPlainFile,
                                  ", a file is expected"));
  }
  if (static_cast<uint64_t>(status.st_size) > max_bytes) {
    throw Error(Blame::user, text(path.string(), ": more than ", max_bytes, " bytes"), "is this the right file?");
  }
  return read_all(file, status, path);
}

FileTree::FileTree(const base::Path& root) {
  std::error_code error;
  root_ = std::filesystem::canonical(root, error);
  if (error) {
    errno = error.value();
    throw_unless_of_the_file(root);
    throw Error(Blame::user, text(root.string(), ": ", error.message()), "check the path");
  }
  descriptor_ = ::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 && errno == ENOTDIR) throw Error(Blame::user, text(root.string(), ": a folder is expected"));
  if (descriptor_ < 0) base::throw_errno(text("cannot open the folder ", root.string()));
}

FileTree::~FileTree() {
  ::close(descriptor_);
}

int FileTree::open_below(const std::string& given, int flags) const {
  static std::atomic<bool> has_openat2 = true;
  std::string name = given;
  if (given.starts_with('/')) {
    const std::string above = root_ == "/" ? "/" : root_.string() + "/";
    if (given.starts_with(above)) name = given.substr(above.size());
  }
  if (name.find('\0') != std::string::npos) return errno = EINVAL, -1;
  if (leads_up(name)) return errno = EXDEV, -1;
  if (has_openat2) {
    const int descriptor = open_beneath(descriptor_, name, flags | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno == ENOSYS || errno == EPERM) has_openat2 = false;
    // EXDEV: perhaps an absolute link back into the tree; EAGAIN: something was renamed meanwhile
    if (has_openat2 && errno != EXDEV && errno != EAGAIN) return -1;
  }
  return open_resolved(root_, name, flags | O_CLOEXEC);
}

FileTree::Listing FileTree::list(const std::string& folder) const {
  Listing all;
  std::vector<std::string> pending{folder};
  while (!pending.empty()) {
    const std::string at = std::move(pending.back());
    pending.pop_back();
    OpenFile opened(open_below(at, O_RDONLY | O_DIRECTORY));
    if (opened.get() < 0) {
      base::throw_errno(text("cannot read the folder ", (root_ / at).string()),
                        text("check the permissions: ls -ld ", base::shell_path((root_ / at).string())));
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(opened.get()), ::closedir);
    if (!entries) base::throw_errno(text("cannot read the folder ", (root_ / at).string()));
    const int descriptor = opened.release();  // entries closes it
    while (const dirent* entry = next_entry(entries.get(), root_ / at)) {
      if (entry->d_name[0] == '.') continue;
      const std::string name = at.empty() ? entry->d_name : text(at, "/", entry->d_name);
      struct stat status {};
      if (!base::is_utf8(entry->d_name)) {
        all.refused.push_back({name, "its name is no UTF-8"});
      } else if (::fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        throw_unless_of_the_file(root_ / name);
        all.refused.push_back({name, reason_of(errno)});
      } else if (S_ISDIR(status.st_mode)) {
        pending.push_back(name);
      } else if (S_ISREG(status.st_mode)) {
        all.files.push_back({name, status.st_size});
      } else if (S_ISLNK(status.st_mode)) {
        const OpenFile target(open_below(name, O_RDONLY | O_NONBLOCK));
        if (target.get() < 0) {
          throw_unless_of_the_file(root_ / name);
          all.refused.push_back({name, text(kLinkReason, reason_of(errno))});
        } else if (::fstat(target.get(), &status) != 0) {
          base::throw_errno(text("cannot look at ", (root_ / name).string()));
        } else if (S_ISREG(status.st_mode)) {
          all.files.push_back({name, status.st_size});
        } else {
          all.refused.push_back(
              {name, text(kLinkReason, "it leads to ",
                          S_ISDIR(status.st_mode) ? "a folder, which is not entered" : kNoPlainFile)});
        }
      } else {
        all.refused.push_back({name, text("this is ", kNoPlainFile)});
      }
    }
  }
  std::sort(all.files.begin(), all.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::sort(all.refused.begin(), all.refused.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

std::vector<std::string> FileTree::folders(const std::string& folder) const {
  OpenFile opened(open_below(folder, O_RDONLY | O_DIRECTORY));
  if (opened.get() < 0 && is_absence(errno)) return {};
  if (opened.get() < 0) base::throw_errno(text("cannot read the folder ", (root_ / folder).string()));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(opened.get()), ::closedir);
  if (!entries) base::throw_errno(text("cannot read the folder ", (root_ / folder).string()));
  const int descriptor = opened.release();
  std::vector<std::string> names;
  while (const dirent* entry = next_entry(entries.get(), root_ / folder)) {
    struct stat status {};
    if (entry->d_name[0] == '.') continue;
    if (::fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      throw_unless_of_the_file(root_ / folder / entry->d_name);
      continue;
    }
    if (S_ISDIR(status.st_mode)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool FileTree::has_file(const std::string& name) const {
  const OpenFile file(open_below(name, O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) throw_unless_of_the_file(root_ / name);
  struct stat status {};
  return file.get() >= 0 && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

bool FileTree::has_folder(const std::string& name) const {
  const OpenFile folder(open_below(name, O_RDONLY | O_DIRECTORY));
  if (folder.get() < 0) throw_unless_of_the_file(root_ / name);
  return folder.get() >= 0;
}

int64_t FileTree::size_of(const std::string& name) const {
  const OpenFile file(open_below(name, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  check_plain(file, root_, name, status);
  return status.st_size;
}

std::string FileTree::read(const std::string& name, int64_t max_bytes) const {
  const OpenFile file(open_below(name, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  check_plain(file, root_, name, status);
  if (status.st_size > max_bytes) {
    throw Error(Blame::user, text(name, ": ", status.st_size, " bytes, more than ", max_bytes, ": refused"));
  }
  return read_all(file, status, root_ / name);
}

std::string FileTree::read_start(const std::string& name, int64_t bytes) const {
  const OpenFile file(open_below(name, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  check_plain(file, root_, name, status);
  status.st_size = std::min<off_t>(status.st_size, bytes);
  return read_all(file, status, root_ / name);
}

}  // namespace lockstep::sources
