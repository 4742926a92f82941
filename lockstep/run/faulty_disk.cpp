// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/faulty_disk.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::run {
class FaultyDisk::File : public DiskFile {
 public:
  File(FaultyDisk& disk, const base::Path& path) : disk_(disk), path_(path), file_(disk.real_->create(path)) {}
  void write(std::span<const std::byte> bytes) override {
    const bool wrong = disk_.goes_wrong();
    file_->write(wrong ? bytes.first(bytes.size() / 2) : bytes);
    if (wrong) disk_.fail();
  }
  void sync() override {
    if (disk_.goes_wrong()) disk_.fail();
    disk_.files_[path_] = true;
  }
  void close() override {
    if (disk_.goes_wrong()) disk_.fail();
    file_->close();
  }

 private:
  FaultyDisk& disk_;
  base::Path path_;
  std::unique_ptr<DiskFile> file_;
};

void FaultyDisk::fail() const {
  errno = code_;
  base::throw_errno("a test of the disk");
}

bool FaultyDisk::goes_wrong() {
  const int64_t act = acts_++;
  if (fault_ == Fault::crash && act >= at_) throw PowerLost{};
  return (fault_ == Fault::fail && act == at_) || (fault_ == Fault::persist && act >= at_);
}

uint64_t FaultyDisk::free_bytes(const base::Path& folder) {
  return goes_wrong() ? 0 : real_->free_bytes(folder);
}

void FaultyDisk::make_folder(const base::Path& path) {
  if (goes_wrong()) fail();
  for (base::Path folder = path; !folder.empty() && !std::filesystem::exists(folder); folder = folder.parent_path()) {
    made_.insert(folder);
  }
  real_->make_folder(path);
}

std::unique_ptr<DiskFile> FaultyDisk::create(const base::Path& path) {
  if (goes_wrong()) fail();
  files_[path] = false;
  return std::make_unique<File>(*this, path);
}

void FaultyDisk::rename(const base::Path& from, const base::Path& to) {
  if (goes_wrong()) fail();
  Renamed act{from, to, "", std::filesystem::is_regular_file(to)};
  if (act.had) act.replaced = base::read_file(to);
  real_->rename(from, to);
  move_marks(from, to);
  renamed_.push_back(std::move(act));
}

// What is known about the files at or below `from` now holds for those at `to`.
void FaultyDisk::move_marks(const base::Path& from, const base::Path& to) {
  std::map<base::Path, bool> moved;
  for (const auto& [path, synced] : files_) {
    const base::Path inside = path.lexically_relative(from);
    const bool below = !inside.empty() && *inside.begin() != "..";
    moved[!below ? path : inside == "." ? to : to / inside] = synced;
  }
  files_ = std::move(moved);
  if (made_.erase(from) > 0) made_.insert(to);
}

void FaultyDisk::sync_folder(const base::Path& path) {
  if (goes_wrong()) fail();
  std::erase_if(renamed_, [&](const Renamed& act) { return act.to.parent_path() == path; });
  std::erase_if(made_, [&](const base::Path& folder) { return folder.parent_path() == path; });
}

void FaultyDisk::remove(const base::Path& path) {
  if (goes_wrong()) fail();
  real_->remove(path);
}

bool FaultyDisk::exists(const base::Path& path) {
  if (goes_wrong()) fail();
  return real_->exists(path);
}

std::vector<base::Path> FaultyDisk::list(const base::Path& folder) {
  if (goes_wrong()) fail();
  return real_->list(folder);
}

void FaultyDisk::lose_unsynced() {
  std::for_each(renamed_.rbegin(), renamed_.rend(), [&](const Renamed& act) {
    if (!std::filesystem::exists(act.to)) return;  // removed since
    real_->rename(act.to, act.from);
    move_marks(act.to, act.from);
    if (act.had) base::write_file(act.to, act.replaced);
  });
  renamed_.clear();
  for (const auto& folder : made_) real_->remove(folder);
  made_.clear();
  for (const auto& [path, synced] : files_) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(path, none);
    if (!synced && !none) std::filesystem::resize_file(path, bytes / 2);
  }
}

}  // namespace lockstep::run
