// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/file.h"

namespace lockstep::sources {

constexpr const char* kWork = ".work";  // the lock and notes of finished shards, until dataset.json is there

// One prep at a time in a folder, which is made where it is missing; the kernel frees the lock of a process that died.
// User error: another one is at work there.
class FolderLock {
 public:
  explicit FolderLock(const base::Path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// All that stands for unfinished work, once dataset.json is there.
void remove_work(const base::Path& folder);

}  // namespace lockstep::sources
