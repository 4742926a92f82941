// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/digest.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/run/record_file.h"

namespace lockstep::workflow {
namespace {

using base::Json;
using base::text;

constexpr double kYoungSeconds = 2;  // clocks of file servers differ by less, and time stamps are coarser than writes

int64_t nanoseconds(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// What cannot be kept (a full disk, the state of somebody else) is read again next time.
void keep(const std::function<void()>& write) {
  try {
    write();
  } catch (const base::Error&) {
    return;
  }
}

}  // namespace

Digests::Digests(const base::Path& cache) : cache_(std::filesystem::absolute(cache)) {
  if (base::is_there(cache_)) read_cache();
}

void Digests::read_cache() {
  size_t lines = 0;
  for (const auto& line : base::split(base::read_file(cache_), '\n')) {
    if (line.empty()) continue;
    ++lines;
    try {
      const Json row = base::parse_json(line, cache_.string());
      known_[row.at("path").as_string()] = {{static_cast<uint64_t>(row.at("inode").as_int()), row.at("size").as_int(),
                                             row.at("modified").as_int(), row.at("changed").as_int()},
                                            row.at("sha256").as_string()};
    } catch (const base::Error&) {
      continue;  // torn by a kill: that file is read again
    }
  }
  compact(lines);
}

std::string Digests::line_of(const std::string& path, const Known& known) {
  Json row = Json::object();
  row["path"] = path;
  row["inode"] = static_cast<int64_t>(known.stamp.inode);
  row["size"] = known.stamp.size;
  row["modified"] = known.stamp.modified;
  row["changed"] = known.stamp.changed;
  row["sha256"] = known.digest;
  return row.dump(-1) + "\n";
}

// A line is added whenever a file changes: every now and then those that no longer hold are left out.
void Digests::compact(size_t lines) {
  if (lines < 1000 || lines < 2 * known_.size()) return;
  std::string all;
  for (const auto& [path, known] : known_) {
    all += line_of(path, known);
  }
  keep([&] { base::write_file(cache_, all); });
}

std::string Digests::of(const base::Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return "";
    throw base::Error(base::blames_the_path(errno) ? base::Blame::user : base::Blame::machine,
                      text("cannot look at ", path.string(), ": ", std::strerror(errno)),
                      "check the path and its rights");
  }
  if (S_ISDIR(status.st_mode)) return of_folder(path);
  if (!S_ISREG(status.st_mode)) {
    throw base::Error(base::Blame::user, text(path.string(), " is neither a file nor a folder: it has no content"),
                      "name a file or a folder");
  }
  return of_file(path, {status.st_ino, status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)});
}

std::string Digests::of_file(const base::Path& path, const Stamp& stamp) {
  const std::string name = std::filesystem::absolute(path).lexically_normal().string();
  const auto found = known_.find(name);
  if (found != known_.end() && found->second.stamp == stamp) return found->second.digest;
  const double now = base::unix_seconds();
  ++files_read_;
  std::string digest = base::sha256_of_file(path);
  if (now - static_cast<double>(std::max(stamp.modified, stamp.changed)) / 1e9 < kYoungSeconds) return digest;
  known_[name] = {stamp, digest};
  keep([&] { run::RecordFile(cache_).append(line_of(name, known_[name])); });
  return digest;
}

// A link to a folder counts by where it points: following it could lead round in a circle.
std::string Digests::of_folder(const base::Path& path) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (const auto& entry : base::list_folder(path)) {
    const std::string name = entry.filename().string();
    if (std::filesystem::is_symlink(entry) && std::filesystem::is_directory(entry)) {
      parts.emplace_back(name, text("link ", std::filesystem::read_symlink(entry).string()));
    } else if (std::filesystem::is_directory(entry) || std::filesystem::is_regular_file(entry)) {
      parts.emplace_back(name, of(entry));
    }
  }
  std::sort(parts.begin(), parts.end());
  base::Sha256 hash;
  const auto add = [&](const std::string& words) {
    hash.update(words);
    hash.update(std::string_view("\0", 1));  // a name ends where it ends
  };
  add("folder");
  for (const auto& [name, digest] : parts) {
    add(name);
    add(digest);
  }
  return hash.hex();
}

}  // namespace lockstep::workflow
