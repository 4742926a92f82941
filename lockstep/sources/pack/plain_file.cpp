// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int64_t kReadAtOnce = int64_t{4} << 20;

}  // namespace

PlainFile::PlainFile(const base::Path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0 && errno == ENOENT) throw Error(Blame::user, text(path.string(), ": there is no such file"));
  if (descriptor_ < 0) base::throw_errno(text("cannot open ", path.string()));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int code = errno;
    ::close(descriptor_);
    errno = code;
    base::throw_errno(text("cannot look at ", path.string()));
  }
  size_ = status.st_size;
}

PlainFile::~PlainFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

PlainFile::PlainFile(PlainFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

std::vector<std::byte> PlainFile::read(int64_t offset, int64_t size) const {
  if (offset < 0 || size < 0 || size > size_ || offset > size_ - size) {
    throw Error(Blame::user, text(path_.string(), ": it ends before byte ", offset, " + ", size));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) base::throw_errno(text("cannot read ", path_.string(), " at byte ", offset));
    if (got == 0) throw Error(Blame::user, text(path_.string(), ": it has become shorter while it was read"));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

uint32_t PlainFile::crc32c() const {
  uint32_t sum = 0;
  for (int64_t at = 0; at < size_; at += kReadAtOnce) {
    sum = base::crc32c(read(at, std::min(kReadAtOnce, size_ - at)), sum);
  }
  return sum;
}

bool PlainFile::has_zeros_from(int64_t offset) const {
  for (int64_t at = offset; at < size_; at += kReadAtOnce) {
    const auto bytes = read(at, std::min(kReadAtOnce, size_ - at));
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte one) { return one != std::byte{0}; })) return false;
  }
  return true;
}

}  // namespace lockstep::sources
