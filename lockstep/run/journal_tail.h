// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::run {

// Follows a journal that others append to, from any host that sees the file: reads only what is new and takes no lock.
// A last line without its end is left for the next poll. A file that was replaced or shortened is read again.
class JournalTail {
 public:
  explicit JournalTail(base::Path path) : path_(std::move(path)) {}

  struct News {
    std::vector<base::Json> events;
    bool starts_over = false;  // all that was told before is void: this is another file
  };
  // What was appended since the last poll; nothing while there is no such file. User error when this user may not read
  // it; machine error when the file system fails.
  News poll();

  // Numbers, from 1 on, of the lines that are no events: torn by a kill, or damaged. The first 100.
  const std::vector<int64_t>& bad_lines() const { return bad_lines_; }
  int64_t num_bad_lines() const { return num_bad_lines_; }

 private:
  void take_line(std::string_view line, std::vector<base::Json>& events);
  void forget();

  base::Path path_;
  uint64_t device_ = 0, inode_ = 0;  // of the file that was read
  uint64_t offset_ = 0;              // bytes read
  std::string unfinished_;           // the beginning of the last line
  int64_t num_lines_ = 0;
  std::vector<int64_t> bad_lines_;
  int64_t num_bad_lines_ = 0;
};

}  // namespace lockstep::run
