// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/entries.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::store {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

constexpr size_t kDigits = 8;

std::string entry_name(int64_t number) {
  std::string digits = text(number);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return digits + ".json";
}

// 0: the name is none of an entry.
int64_t number_of(const Path& path) {
  const std::string stem = path.stem().string();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  const bool whole = error == std::errc() && end == stem.data() + stem.size();
  return whole && path.filename() == entry_name(number) ? number : 0;
}

std::string entry_text(Json said) {
  said.erase("sha256");
  const std::string sum = base::sha256_hex(said.dump(-1));
  said["sha256"] = sum;
  return said.dump(-1) + "\n";
}

Json read_entry(const Path& path) {
  const std::string content = base::read_file(path, 1 << 16);
  std::string why = "its checksum does not hold";
  try {
    Json said = base::parse_json(content, path.string());
    if (said.is_object() && content == entry_text(said)) return said;
  } catch (const Error& error) {
    why = error.what();
  }
  throw Error(Blame::machine, text(path.string(), " is damaged: ", why),
              "bring this file back from a copy of the store; an entry is never changed once it is there");
}

std::vector<int64_t> numbers_in(const Path& folder) {
  std::vector<int64_t> numbers;
  for (const Path& path : base::list_folder(folder)) {
    if (const int64_t number = number_of(path); number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// A name that no other writer has, on any host.
Path draft_for(const Path& folder) {
  const auto now = static_cast<int64_t>(base::unix_seconds() * 1e6);
  return folder / text(base::kTemporary, site::host_name(), "-", ::gettid(), "-", now);
}

}  // namespace

std::vector<Entry> read_entries(const Path& folder) {
  std::vector<Entry> entries;
  for (const int64_t number : numbers_in(folder)) {
    if (number != static_cast<int64_t>(entries.size()) + 1) {
      throw Error(Blame::machine,
                  text((folder / entry_name(static_cast<int64_t>(entries.size()) + 1)).string(), " is missing: entry ",
                       number, " is there"),
                  "bring this file back from a copy of the store");
    }
    entries.push_back({number, read_entry(folder / entry_name(number))});
  }
  return entries;
}

bool has_entries(const Path& folder) {
  return !numbers_in(folder).empty();
}

std::vector<Entry> read_last_entry(const Path& folder) {
  const auto numbers = numbers_in(folder);
  if (numbers.empty()) return {};
  return {{numbers.back(), read_entry(folder / entry_name(numbers.back()))}};
}

bool add_entry(const Path& folder, int64_t number, const Json& said) {
  base::make_synced_folders(folder);
  const Path draft = draft_for(folder), entry = folder / entry_name(number);
  base::FileWriter file(draft, base::FileWriter::Mode::truncate);
  int code = 0;
  try {
    file.write(entry_text(said));
    file.sync();
    file.close();
    if (::link(draft.c_str(), entry.c_str()) != 0) code = errno;
    // A network file system may have made the link and lost its answer: then the file has two names.
    struct stat status {};
    if (code == EEXIST && ::stat(draft.c_str(), &status) == 0 && status.st_nlink == 2) code = 0;
    if (code == 0) base::fsync_folder(folder);
  } catch (const Error&) {
    ::unlink(draft.c_str());
    throw;
  }
  ::unlink(draft.c_str());
  if (code == 0 || code == EEXIST) return code == 0;
  errno = code;
  base::throw_errno(text("cannot make ", entry.string()),
                    "the store needs a file system with hard links, where you may write");
}

std::vector<Path> leftovers(const Path& folder) {
  std::vector<Path> left;
  for (const Path& path : base::list_folder(folder)) {
    if (path.filename().string().find(base::kTemporary) != std::string::npos) left.push_back(path);
  }
  std::sort(left.begin(), left.end());
  return left;
}

}  // namespace lockstep::store
