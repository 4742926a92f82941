// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/storage.h"

#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/site/kernel_file.h"

namespace lockstep::site {
namespace {

using Stopwatch = std::chrono::steady_clock;
constexpr size_t kChunk = size_t{4} << 20;

double seconds_since(Stopwatch::time_point start) {
  return std::chrono::duration<double>(Stopwatch::now() - start).count();
}

// A file without a name, so that nothing can be left behind; -1 when the folder refuses.
int open_nameless(const std::string& folder) {
  const int direct = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (direct >= 0) return direct;
  std::string pattern = folder + "/.lockstep-rate-XXXXXX";  // file systems without O_TMPFILE: NFS, Lustre
  const int named = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(pattern.c_str());
  return named;
}

uint64_t write_until(int file, uint64_t bytes, Stopwatch::time_point deadline) {
  std::vector<char> chunk(kChunk);
  for (size_t i = 0; i < chunk.size(); ++i) chunk[i] = static_cast<char>(i * 2654435761u >> 13);  // compresses badly
  uint64_t written = 0;
  do {  // one chunk whatever the time: a process that waited long for its turn measures too
    const ssize_t put = ::write(file, chunk.data(), std::min<uint64_t>(chunk.size(), bytes - written));
    if (put <= 0 || ::fdatasync(file) != 0) break;  // synced as it goes, so that the deadline holds
    written += static_cast<uint64_t>(put);
  } while (written < bytes && Stopwatch::now() < deadline);
  return written;
}

uint64_t read_until_deadline(int file, uint64_t bytes, Stopwatch::time_point deadline) {
  std::vector<char> chunk(kChunk);
  uint64_t got = 0;
  do {
    const ssize_t part = ::pread(file, chunk.data(), chunk.size(), static_cast<off_t>(got));
    if (part <= 0) break;
    got += static_cast<uint64_t>(part);
  } while (got < bytes && Stopwatch::now() < deadline);
  return got;
}

// Mount points escape blanks as \040.
std::string unescape(std::string_view word) {
  std::string plain;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && i + 3 < word.size()) {
      plain += static_cast<char>((word[i + 1] - '0') * 64 + (word[i + 2] - '0') * 8 + (word[i + 3] - '0'));
      i += 3;
    } else {
      plain += word[i];
    }
  }
  return plain;
}

bool is_under(const std::string& folder, const std::string& point) {
  if (point == "/") return true;
  return folder.compare(0, point.size(), point) == 0 && (folder.size() == point.size() || folder[point.size()] == '/');
}

// The type by the number that the kernel gives it: for a chroot, whose root stands in no mount table.
std::string magic_type(const std::string& folder) {
  struct Known {
    int64_t magic;
    const char* name;
  };
  constexpr std::array<Known, 8> kKnown{{{0xEF53, "ext4"},
                                         {0x58465342, "xfs"},
                                         {0x9123683E, "btrfs"},
                                         {0x01021994, "tmpfs"},
                                         {0x794C7630, "overlay"},
                                         {0x6969, "nfs"},
                                         {0x0BD00BD0, "lustre"},
                                         {0x47504653, "gpfs"}}};
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return "";
  for (const Known& known : kKnown) {
    if (static_cast<int64_t>(status.f_type) == known.magic) return known.name;
  }
  return "unknown";
}

}  // namespace

bool is_network(const std::string& type) {
  constexpr std::array<std::string_view, 13> kTypes{"nfs",  "nfs4", "lustre", "gpfs", "beegfs",   "ceph",  "cifs",
                                                    "smb3", "afs",  "panfs",  "9p",   "orangefs", "wekafs"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

std::string mount_type(const std::string& mounts, const std::string& folder) {
  std::string best;
  std::string type;
  for (const auto& line : base::split(mounts, '\n')) {
    std::istringstream words(line);
    std::string device;
    std::string point;
    std::string kind;
    if (!(words >> device >> point >> kind)) continue;
    point = unescape(point);
    // The later of two mounts on one point covers the earlier.
    if (is_under(folder, point) && point.size() >= best.size()) {
      best = point;
      type = kind;
    }
  }
  return type;
}

Storage read_storage(const std::string& role, const base::Path& folder) {
  Storage found;
  found.role = role;
  std::error_code unresolved;
  const base::Path whole = std::filesystem::weakly_canonical(folder, unresolved);
  found.folder = unresolved ? folder.string() : whole.string();
  found.type = mount_type(kernel_text("/proc/self/mounts"), found.folder);
  if (found.type.empty()) found.type = magic_type(found.folder);
  struct statvfs status {};
  if (::statvfs(found.folder.c_str(), &status) != 0) return found;
  found.total_bytes = uint64_t{status.f_blocks} * status.f_frsize;
  found.free_bytes = uint64_t{status.f_bavail} * status.f_frsize;
  found.total_inodes = status.f_files;
  found.free_inodes = status.f_favail;
  found.writable = ::access(found.folder.c_str(), W_OK) == 0 && (status.f_flag & ST_RDONLY) == 0;
  return found;
}

void measure_rates(Storage& storage, const RateLimits& limits) {
  const int file = open_nameless(storage.folder);
  if (file < 0) return;
  const auto start = Stopwatch::now();
  const uint64_t written = write_until(file, limits.bytes, start + limits.time * 2 / 3);
  const double write_time = seconds_since(start);
  if (written > 0) {
    storage.write_rate = static_cast<double>(written) / write_time;
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const auto turn = Stopwatch::now();
    const uint64_t got = read_until_deadline(file, written, start + limits.time);
    if (got > 0) storage.read_rate = static_cast<double>(got) / seconds_since(turn);
  }
  ::close(file);
}

}  // namespace lockstep::site
