// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/folder_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/pack/folder_lock.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

// "photos", "photos/" and "./photos" are one source.
bool is_same_folder(const base::Json& one, const base::Json& other) {
  if (!one.is_string() || !other.is_string()) return false;
  std::error_code error;
  const bool same = std::filesystem::equivalent(one.as_string(), other.as_string(), error);
  return same && !error;
}

struct Difference {
  std::string key;
  const base::Json* was = nullptr;  // null: the file has it not
  const base::Json* is = nullptr;   // null: the description has it not

  std::string in_words() const {
    const auto is_short = [](const base::Json* value) { return !value || !(value->is_array() || value->is_object()); };
    if (!is_short(was) || !is_short(is)) return "";
    const auto word = [](const base::Json* value) { return value ? value->dump(-1) : std::string("not given"); };
    return text(": it was ", word(was), " and is ", word(is));
  }
};

// The first member that one of the two has not, or has otherwise.
std::optional<Difference> difference(const base::Json& file, const base::Json& description) {
  const auto found = [&](std::string_view key) { return file.is_object() ? file.find(key) : nullptr; };
  for (const auto& member : description.members()) {
    const base::Json* was = found(member.key);
    if (!was || !(*was == member.value || (member.key == "source" && is_same_folder(*was, member.value)))) {
      return Difference{member.key, was, &member.value};
    }
  }
  for (const std::string_view key : kOptionalMembers) {
    if (found(key) && !description.find(key)) return Difference{std::string(key), found(key), nullptr};
  }
  return std::nullopt;
}

// What a kill leaves before or inside mark_begun().
bool is_begun_litter(const Path& path) {
  const std::string name = path.filename().string();
  if (name != kWork) return name.starts_with(text(kDatasetBegun, base::kTemporary));
  const std::vector<Path> work = base::list_folder(path);
  return work.empty() || (work.size() == 1 && work.front().filename() == "lock");
}

bool holds_nothing(const Path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    if (!is_begun_litter(entry->path())) return false;
    entry.increment(error);
  }
  if (error) throw Error(Blame::machine, text("cannot read the folder ", folder.string(), ": ", error.message()));
  return true;
}

}  // namespace

bool is_complete(const Path& folder, const base::Json& description) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return false;
  if (!std::filesystem::is_directory(folder, error)) {
    throw Error(Blame::user, text(folder.string(), ": this is a file"), "give a new folder with --to");
  }
  for (const char* name : {kDatasetComplete, kDatasetBegun}) {
    if (!std::filesystem::exists(folder / name, error)) continue;
    const base::Json file = base::read_json(folder / name, {.max_bytes = size_t{1} << 30});
    const auto other = difference(file, description);
    if (!other) return name == kDatasetComplete;
    throw Error(
        Blame::user,
        text((folder / name).string(), ": the folder holds another dataset (", other->key, ")", other->in_words()),
        text("give another folder with --to, or remove this one: rm -r ", base::shell_path(folder.string())));
  }
  if (holds_nothing(folder)) return false;
  throw Error(Blame::user, text(folder.string(), ": the folder is not empty and holds no dataset of ours"),
              "give a new or empty folder with --to");
}

void mark_begun(const Path& folder, const base::Json& description) {
  base::make_folders(folder);
  base::write_json(folder / kDatasetBegun, description);
}

void unmark_begun(const Path& folder) {
  std::error_code error;
  const Path begun = folder / kDatasetBegun;
  if (!std::filesystem::exists(begun, error)) return;  // removing what is not there fails on a read-only file system
  std::filesystem::remove(begun, error);
  if (error) throw Error(Blame::machine, text("cannot remove ", begun.string(), ": ", error.message()));
}

void remove_litter(const Path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find(base::kTemporary) != std::string::npos || (name.starts_with(".") && name.ends_with(".part"))) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

void place_file(const Path& path, const std::string& content) {
  const Path temporary = path.parent_path() / text(".", path.filename().string(), ".part");
  try {
    base::FileWriter file(temporary, base::FileWriter::Mode::truncate);
    file.write(content);
    file.close();
    if (::rename(temporary.c_str(), path.c_str()) != 0) base::throw_errno(text("cannot rename to ", path.string()));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void sync_file_system(const Path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::syncfs(descriptor) == 0;
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  errno = code;
  if (!synced) base::throw_errno(text("cannot sync ", folder.string()));
}

}  // namespace lockstep::sources
