// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::base {

std::string read_tail(const Path& path, size_t bytes) {
  const int file = open_plain(path, O_RDONLY);
  if (file < 0) return "";
  const off_t size = ::lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(bytes));
  std::string content(static_cast<size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t length = ::pread(file, content.data(), content.size(), from);
  ::close(file);
  content.resize(static_cast<size_t>(std::max<ssize_t>(0, length)));
  if (from > 0) content.erase(0, content.find('\n') + 1);
  return content;
}

}  // namespace lockstep::base
