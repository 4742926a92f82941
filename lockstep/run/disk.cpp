// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/disk.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

using base::Path;
using base::text;
using base::throw_errno;

class RealFile : public DiskFile {
 public:
  explicit RealFile(const Path& path) : file_(path, base::FileWriter::Mode::truncate) {}
  void write(std::span<const std::byte> bytes) override { file_.write(bytes); }
  void sync() override { file_.sync(); }
  void close() override { file_.close(); }

 private:
  base::FileWriter file_;
};

class RealDisk : public Disk {
 public:
  uint64_t free_bytes(const Path& folder) override {
    struct statvfs status {};
    if (::statvfs(folder.c_str(), &status) != 0)
      throw_errno(text("cannot ask for the free space of ", folder.string()));
    return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
  }
  void make_folder(const Path& path) override { base::make_folders(path); }
  std::unique_ptr<DiskFile> create(const Path& path) override { return std::make_unique<RealFile>(path); }
  void rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      throw_errno(text("cannot rename ", from.string(), " to ", to.string()));
  }
  void sync_folder(const Path& path) override { base::fsync_folder(path); }
  void remove(const Path& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!error) return;
    errno = error.value();
    throw_errno(text("cannot remove ", path.string()));
  }
  bool exists(const Path& path) override { return base::is_there(path); }
  std::vector<Path> list(const Path& folder) override { return base::list_folder(folder); }
};

}  // namespace

std::shared_ptr<Disk> real_disk() {
  return std::make_shared<RealDisk>();
}

}  // namespace lockstep::run
