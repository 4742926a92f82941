// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::workflow {

// What a file or a folder contains, as a SHA-256. Files whose inode, size and times are those of last time are not read
// again; one that was young when it was read is, because its clock may be another machine's. One thread.
class Digests {
 public:
  // A file of lines that other processes may append to as well, without a lock: over NFS one may lie in the middle of
  // another's. A line begins with its brace and ends with its own, so that no mixture is one: that file is read again.
  explicit Digests(const base::Path& cache);

  // "" when there is nothing at the path. Of a folder: names and contents of all that is in it, whatever the order.
  // User error when something cannot be read.
  std::string of(const base::Path& path);

  int64_t files_read() const { return files_read_; }  // those that had to be read

 private:
  struct Stamp {
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t modified = 0;  // nanoseconds since 1970
    int64_t changed = 0;   // likewise, of the inode: set by no program
    bool operator==(const Stamp&) const = default;
  };
  struct Known {
    Stamp stamp;
    std::string digest;
  };

  static std::string line_of(const std::string& path, const Known& known);
  std::string of_file(const base::Path& path, const Stamp& stamp);
  std::string of_folder(const base::Path& path);
  void read_cache();
  void compact(size_t lines);

  base::Path cache_;
  std::map<std::string, Known> known_;
  int64_t files_read_ = 0;
};

}  // namespace lockstep::workflow
