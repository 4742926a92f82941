// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/store/entries.h"
#include "lockstep/store/store.h"
#include "lockstep/store/version.h"

namespace lockstep::store {
namespace {

using base::Path;
using base::text;

// Collects what it sees instead of ending at the first damage.
class Inspection {
 public:
  explicit Inspection(const Path& store) : store_(store) {}

  Verified inspect() {
    for (const std::string& name : names(store_)) inspect_name(name);
    inspect_versions();
    for (const std::string& id : named_) {
      if (!present_.contains(id)) found_.damage.push_back((store_ / "versions" / id).string() + " is missing");
    }
    note_leftovers(store_);
    return found_;
  }

 private:
  void inspect_name(const std::string& name) {
    ++found_.names;
    const Path folder = store_ / "names" / name;
    std::vector<Entry> numbers = entries_of(folder / "versions");
    for (const Entry& entry : numbers) named_.insert(entry.said.string_or("version", ""));
    for (const Path& tag : base::list_folder(folder / "tags")) {
      ++found_.tags;
      for (const Entry& entry : entries_of(tag)) {
        const int64_t number = entry.said.int_or("number", 0);
        if (number >= 1 && number <= static_cast<int64_t>(numbers.size())) continue;
        found_.damage.push_back(text(tag.string(), ": entry ", entry.number, " points to version ", number, " of '",
                                     name, "', which has ", numbers.size()));
      }
    }
  }

  std::vector<Entry> entries_of(const Path& folder) {
    note_leftovers(folder);
    try {
      return read_entries(folder);
    } catch (const base::Error& error) {
      found_.damage.emplace_back(error.what());
      return {};
    }
  }

  void inspect_versions() {
    const Path folder = store_ / "versions";
    std::vector<Path> folders = base::list_folder(folder);
    std::sort(folders.begin(), folders.end());
    for (const Path& version : folders) {
      const std::string id = version.filename().string();
      if (id.find(base::kTemporary) != std::string::npos) continue;
      present_.insert(id);
      ++found_.versions;
      const std::string why = damage(version);
      if (!why.empty()) {
        found_.damage.push_back(text(version.string(), ": ", why));
        continue;
      }
      found_.bytes += bytes_of(version);
      if (!named_.contains(id)) found_.notes.push_back(version.string() + ": no name has this version");
    }
    note_leftovers(folder);
  }

  void note_leftovers(const Path& folder) {
    for (const Path& path : leftovers(folder)) {
      found_.notes.push_back(path.string() + ": a writer is at work, or was killed; then it may be removed");
    }
  }

  Path store_;
  Verified found_;
  std::set<std::string> named_, present_;
};

}  // namespace

Verified verify(const Path& store) {
  return Inspection(store).inspect();
}

}  // namespace lockstep::store
