// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/pack/folder_state.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

// Lustre that is mounted without flock (ENOSYS), and others that know no locks: there the user takes care.
bool has_no_locks(int code) {
  return code == ENOSYS || code == ENOTSUP || code == ENOLCK || code == EINVAL;
}

int open_lock(const base::Path& folder) {
  base::make_folders(folder / kWork);
  const int descriptor = base::open_plain(folder / kWork / "lock", O_RDWR | O_CREAT);
  if (descriptor < 0) base::throw_errno(text("cannot write to ", (folder / kWork).string()));
  return descriptor;
}

}  // namespace

FolderLock::FolderLock(const base::Path& folder) : descriptor_(open_lock(folder)) {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || has_no_locks(errno)) return;
  const int code = errno;
  ::close(descriptor_);
  if (code == EWOULDBLOCK) {
    throw Error(Blame::user, text(folder.string(), ": another lockstep prep is at work here"),
                "wait for it, or stop it");
  }
  errno = code;
  base::throw_errno(text("cannot lock ", (folder / kWork / "lock").string()));
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

void remove_work(const base::Path& folder) {
  std::error_code ignored;
  unmark_begun(folder);
  std::filesystem::remove_all(folder / kWork, ignored);
}

}  // namespace lockstep::sources
