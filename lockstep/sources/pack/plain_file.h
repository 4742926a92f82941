// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::sources {

// A file read by read(), not through a memory map: a bad sector or a file that is cut meanwhile is an error with a name
// and not SIGBUS. Calls may come from any thread.
class PlainFile {
 public:
  // User error: there is no such file. Machine error: it cannot be opened.
  explicit PlainFile(const base::Path& path);
  ~PlainFile();
  PlainFile(PlainFile&& other) noexcept;
  PlainFile& operator=(PlainFile&&) = delete;

  int64_t size() const { return size_; }  // when it was opened
  // User error: the file ends before. Machine error: it cannot be read.
  std::vector<std::byte> read(int64_t offset, int64_t size) const;
  uint32_t crc32c() const;                    // of all of it
  bool has_zeros_from(int64_t offset) const;  // and nothing else up to its end

 private:
  base::Path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace lockstep::sources
