// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "lockstep/run/disk.h"

namespace lockstep::run {

struct PowerLost {};  // thrown where a crashing process would simply be gone: no handler of errors sees it

// A disk for tests that goes wrong at the N-th act, and that can forget what was never synced.
//   fail:    that act does half of its work and throws a machine error; later ones succeed
//   persist: likewise, and all later ones fail too (a full disk)
//   crash:   the process is gone at that act
class FaultyDisk : public Disk {
 public:
  enum class Fault { none, fail, persist, crash };
  // `code` is the error that it reports: ENOSPC, EIO.
  FaultyDisk(Fault fault, int64_t at, int code = ENOSPC) : fault_(fault), at_(at), code_(code), real_(real_disk()) {}

  uint64_t free_bytes(const base::Path& folder) override;
  void make_folder(const base::Path& path) override;
  std::unique_ptr<DiskFile> create(const base::Path& path) override;
  void rename(const base::Path& from, const base::Path& to) override;
  void sync_folder(const base::Path& path) override;
  void remove(const base::Path& path) override;
  bool exists(const base::Path& path) override;
  std::vector<base::Path> list(const base::Path& folder) override;

  int64_t acts() const { return acts_; }
  // What a disk may look like after the power went: unsynced contents are torn, unsynced names undone.
  void lose_unsynced();

 private:
  class File;
  struct Renamed {
    base::Path from, to;
    std::string replaced;  // content of the file that `to` was
    bool had = false;
  };
  bool goes_wrong();  // counts one act
  [[noreturn]] void fail() const;
  void move_marks(const base::Path& from, const base::Path& to);

  Fault fault_;
  int64_t at_;
  int code_;
  std::shared_ptr<Disk> real_;
  int64_t acts_ = 0;
  std::map<base::Path, bool> files_;  // -> content synced
  std::vector<Renamed> renamed_;      // whose folder was not synced since
  std::set<base::Path> made_;         // folders whose own folder was not synced since
};

}  // namespace lockstep::run
