// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::run {

// A file being written for the first time. Every call throws a machine error when it fails.
class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;
  virtual void close() = 0;
};

// Every call by which saving a checkpoint changes the disk or looks at it. Each throws a machine error when it fails.
// Tests use a failing or crashing disk instead and let each call fail in turn.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual uint64_t free_bytes(const base::Path& folder) = 0;
  virtual void make_folder(const base::Path& path) = 0;
  virtual std::unique_ptr<DiskFile> create(const base::Path& path) = 0;
  virtual void rename(const base::Path& from, const base::Path& to) = 0;
  virtual void sync_folder(const base::Path& path) = 0;
  virtual void remove(const base::Path& path) = 0;  // with everything in it
  virtual bool exists(const base::Path& path) = 0;
  virtual std::vector<base::Path> list(const base::Path& folder) = 0;  // nothing when it is not there
};

std::shared_ptr<Disk> real_disk();

}  // namespace lockstep::run
