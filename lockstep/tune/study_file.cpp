// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/torn_record.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr double kLookAgain = 0.2;  // seconds between looks whether the holder of a lock still lives

// Renamed first: unlink() of two waiters that both found the lock stale could remove the lock of a third.
bool remove_lock(const base::Path& lock) {
  std::random_device random;
  const std::string away = text(lock.string(), ".", ::getpid(), "-", random(), "-", random(), ".rename");
  if (::rename(lock.c_str(), away.c_str()) != 0) return false;
  return ::unlink(away.c_str()) == 0;
}

// Whether the lock is that of a process that is dead by now. One that leads through our own folder is: of whoever held
// that before us.
bool is_of_the_dead(const base::Path& folder, const base::Path& lock) {
  std::error_code gone;
  const std::string target = std::filesystem::read_symlink(lock, gone).string();
  const std::string marker = text("/", folder.parent_path().filename().string(), "/");
  const size_t at = target.rfind(marker);
  if (gone || at == std::string::npos) return false;
  const size_t begin = at + marker.size();
  const size_t end = target.find("/../../", begin);
  if (end == std::string::npos) return false;  // Optuna's, in a folder of that name
  const std::string holder = target.substr(begin, end - begin);
  return holder == folder.filename() || !run::read_holder(folder.parent_path() / holder);
}

// One at a time, so that none takes away the lock of whoever came after the dead one.
bool remove_lock_of_the_dead(const base::Path& folder, const base::Path& lock) {
  const std::string guard = lock.string() + ".breaking";
  const int descriptor = ::open(guard.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return false;
  ::close(descriptor);
  const bool removed = is_of_the_dead(folder, lock) && remove_lock(lock);
  ::unlink(guard.c_str());
  return removed;
}

// The bytes from `offset` on. The file is opened each time: NFS shows what others have written at open().
std::string read_from(const base::Path& path, uint64_t offset) {
  const int descriptor = base::open_plain(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) base::throw_errno(text("cannot read ", path.string()), "check the path and its permissions");
  std::string bytes;
  char piece[1 << 16];
  ssize_t got = 0;
  while ((got = ::pread(descriptor, piece, sizeof piece, static_cast<off_t>(offset + bytes.size()))) > 0) {
    bytes.append(piece, static_cast<size_t>(got));
  }
  const int code = errno;
  ::close(descriptor);
  if (got < 0) {
    errno = code;
    base::throw_errno(text("cannot read ", path.string()));
  }
  return bytes;
}

}  // namespace

LinkLock::LinkLock(const base::Path& file, const base::Path& folder, double grace) : lock_(file.string() + ".lock") {
  // Absolute, since a waiter's stat() follows the link.
  std::string target = std::filesystem::absolute(file).string();
  if (folder.has_filename() && std::filesystem::is_directory(folder)) {
    target = (std::filesystem::absolute(folder) / "../.." / file.filename()).string();
  }
  double wait = 0.001;
  double since = base::steady_seconds();
  double looked = since;
  struct timespec last {};
  while (::symlink(target.c_str(), lock_.c_str()) != 0) {
    if (errno != EEXIST) base::throw_errno(text("cannot lock ", file.string()), "the folder must be writable");
    // As Optuna does: the time of the file itself, which every append changes.
    struct stat found {};
    if (::stat(lock_.c_str(), &found) != 0) {
      if (::lstat(lock_.c_str(), &found) != 0) continue;  // it has just gone
    }
    if (found.st_mtim.tv_sec != last.tv_sec || found.st_mtim.tv_nsec != last.tv_nsec) {
      last = found.st_mtim;
      since = base::steady_seconds();
    }
    if (base::steady_seconds() - looked > kLookAgain) {
      looked = base::steady_seconds();
      if (!folder.empty() && is_of_the_dead(folder, lock_) && remove_lock_of_the_dead(folder, lock_)) continue;
    }
    if (base::steady_seconds() - since > grace && remove_lock(lock_)) {
      since = base::steady_seconds();
      wait = 0.001;
      continue;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    wait = std::min(wait * 2, 0.05);
  }
  struct stat mine {};
  if (::lstat(lock_.c_str(), &mine) == 0) inode_ = mine.st_ino;
}

void LinkLock::ensure_held() const {
  struct stat now {};
  if (::lstat(lock_.c_str(), &now) == 0 && now.st_ino == inode_) return;
  throw Error(Blame::machine, text(lock_.string(), ": another process broke this lock, since nothing came for long"),
              "start the same command again: nothing is lost");
}

LinkLock::~LinkLock() {
  struct stat now {};
  if (::lstat(lock_.c_str(), &now) == 0 && now.st_ino == inode_) remove_lock(lock_);
}

std::string iso_time(double unix_seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(unix_seconds));
  const auto micro = static_cast<int>((unix_seconds - std::floor(unix_seconds)) * 1e6);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char date[64];
  std::snprintf(date, sizeof date, "%04d-%02d-%02dT%02d:%02d:%02d.%06d+00:00", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, micro);
  return date;
}

double unix_time(const std::string& iso) {
  std::tm parts{};
  double seconds = 0;
  int offset_hours = 0;
  int offset_minutes = 0;
  char sign = '+';
  const int read =
      std::sscanf(iso.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf%c%2d:%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &seconds, &sign, &offset_hours, &offset_minutes);
  if (read < 6) return 0;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const double offset = (offset_hours * 3600 + offset_minutes * 60) * (sign == '-' ? -1 : 1);
  return static_cast<double>(::timegm(&parts)) + seconds - offset;
}

StudyFile::StudyFile(base::Path path, const std::string& study, std::string worker)
    : path_(std::move(path)), study_(study), worker_(std::move(worker)), trials_(study) {
  if (!base::is_there(path_)) base::FileWriter(path_, base::FileWriter::Mode::append).sync();
  read();
}

void StudyFile::read() {
  const std::string bytes = read_from(path_, offset_);
  size_t begin = 0;
  for (size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n', begin)) {
    trials_.apply(std::string_view(bytes).substr(begin, end - begin), text(path_.string(), ":", lines_ + 1));
    ++lines_;
    begin = end + 1;
  }
  offset_ += begin;
}

void StudyFile::cut_torn_line() const {
  if (std::filesystem::file_size(path_) <= offset_) return;
  run::cut_torn_record(path_, offset_);
}

void StudyFile::Update::add(int64_t operation, const std::string& fields) {
  const std::string line =
      text("{\"op_code\":", operation, ",\"worker_id\":", base::quote_json(file_.worker_), ",", fields, "}");
  file_.trials_.apply(line, text(file_.path_.string(), ": a record of ours"));
  lines_ += line + "\n";
  ++count_;
}

void StudyFile::update(const std::function<void(Update&)>& work) {
  const LinkLock lock(path_, worker_folder(path_, worker_));
  read();
  Update update(*this);
  work(update);
  if (update.count_ == 0) return;
  lock.ensure_held();
  cut_torn_line();
  base::FileWriter file(path_, base::FileWriter::Mode::append);
  file.write_whole(update.lines_);
  file.sync();
  file.close();
  offset_ += update.lines_.size();
  lines_ += update.count_;
}

bool StudyFile::make_study(bool maximize) {
  bool made = false;
  update([&](Update& update) {
    if (update.trials().has_study()) return;
    made = true;
    update.add(0, text("\"study_name\":", base::quote_json(study_), ",\"directions\":[", maximize ? 2 : 1, "]"));
  });
  return made;
}

}  // namespace lockstep::tune
