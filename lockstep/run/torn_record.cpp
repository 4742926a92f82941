// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/torn_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::run {

void cut_torn_record(const base::Path& path, uint64_t bytes) {
  const int file = base::open_plain(path, O_WRONLY);
  const bool cut = file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
  const int code = errno;
  if (file >= 0) ::close(file);
  errno = code;
  if (!cut) base::throw_errno(base::text("cannot cut the torn last line off ", path.string()));
}

}  // namespace lockstep::run
