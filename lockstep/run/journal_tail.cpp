// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/journal_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"

namespace lockstep::run {
namespace {

using base::text;

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kMostBadLines = 100;
constexpr size_t kLongestLine = size_t{4} << 20;  // no event is longer: a file without line ends must not fill memory

struct Closing {
  int file;
  ~Closing() { ::close(file); }
};

}  // namespace

void JournalTail::forget() {
  *this = JournalTail(std::move(path_));
}

void JournalTail::take_line(std::string_view line, std::vector<base::Json>& events) {
  ++num_lines_;
  if (line.empty()) return;
  if (auto event = parse_event(line, path_.string())) {
    events.push_back(std::move(*event));
    return;
  }
  ++num_bad_lines_;
  if (bad_lines_.size() < kMostBadLines) bad_lines_.push_back(num_lines_);
}

JournalTail::News JournalTail::poll() {
  News news;
  const int file = base::open_plain(path_, O_RDONLY);
  if (file < 0 && errno == ENOENT) return news;
  if (file < 0 && errno == EACCES) {
    throw base::Error(
        base::Blame::user, text(path_.string(), ": this user may not read it"),
        text("ask its owner for: chmod a+r ", base::shell_path(path_.string()), " (and a+x of the folders above)"));
  }
  if (file < 0) base::throw_errno(text("cannot open ", path_.string()));
  const Closing closing{file};
  struct stat now {};
  if (::fstat(file, &now) != 0) base::throw_errno(text("cannot read ", path_.string()));
  const auto size = static_cast<uint64_t>(now.st_size);
  if (inode_ != 0 && (now.st_dev != device_ || now.st_ino != inode_ || size < offset_)) {
    forget();
    news.starts_over = true;
  }
  device_ = now.st_dev;
  inode_ = now.st_ino;
  std::string piece(kPiece, '\0');
  while (offset_ < size) {
    const ssize_t length = ::pread(file, piece.data(), piece.size(), static_cast<off_t>(offset_));
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) base::throw_errno(text("cannot read ", path_.string()));
    if (length == 0) break;
    offset_ += static_cast<uint64_t>(length);
    std::string_view rest(piece.data(), static_cast<size_t>(length));
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      unfinished_ += rest.substr(0, end);
      take_line(std::exchange(unfinished_, {}), news.events);
      rest.remove_prefix(end + 1);
    }
    if (unfinished_.size() < kLongestLine) unfinished_ += rest;
  }
  return news;
}

}  // namespace lockstep::run
