// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/store.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"
#include "lockstep/store/entries.h"
#include "lockstep/store/version.h"

namespace lockstep::store {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

constexpr const char* kStoreFile = "store.json";
constexpr std::string_view kNewest = "latest";
constexpr size_t kLeastDigits = 8;  // of an id
constexpr size_t kIdDigits = 64;

Path versions_folder(const Path& store) {
  return store / "versions";
}
Path names_folder(const Path& store) {
  return store / "names";
}
Path numbers_folder(const Path& store, const std::string& name) {
  return names_folder(store) / name / "versions";
}
Path tags_folder(const Path& store, const std::string& name) {
  return names_folder(store) / name / "tags";
}

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_id_start(std::string_view word) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return word.size() >= kLeastDigits && word.size() <= kIdDigits && std::all_of(word.begin(), word.end(), digit);
}

// Names become folders, and stand before a colon.
bool is_name(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !word.empty() && word.size() <= 64 && std::all_of(word.begin(), word.end(), plain) && word[0] != '.' &&
         word[0] != '-';
}

void check_name(const std::string& name) {
  if (is_name(name)) return;
  throw Error(Blame::user, text("'", name, "' cannot be a name in a store"),
              "letters, digits, '-', '_' and '.', at most 64, beginning with a letter or digit: --name pets");
}

void check_tag(const std::string& tag) {
  if (is_name(tag) && !is_number(tag) && !is_id_start(tag) && tag != kNewest) return;
  throw Error(Blame::user, text("'", tag, "' cannot be a tag"),
              "letters, digits, '-', '_' and '.', not a number and not 'latest': production");
}

void check_store(const Path& store) {
  if (is_store(store)) {
    const Json document = base::read_json(store / kStoreFile);
    if (document.int_or("format", 0) == 1) return;
    throw Error(Blame::user, text(store.string(), ": a store of another format than 1"),
                "read it with the version of lockstep that wrote it");
  }
  throw Error(Blame::user, text(store.string(), ": there is no store"),
              text("the first version makes it: lockstep store add RUN --name NAME --store ",
                   base::shell_path(store.string())));
}

void make_store(const Path& store) {
  if (is_store(store)) return check_store(store);
  base::make_synced_folders(store);
  for (const Path& path : base::list_folder(store)) {
    const std::string name = path.filename().string();
    if (name == kStoreFile || name.find(base::kTemporary) != std::string::npos) continue;
    if (is_store(store)) return;  // another writer has just made it
    throw Error(Blame::user, text(store.string(), ": this folder is no store, and not empty (", name, ")"),
                "give a new or an empty folder with --store");
  }
  Json document = Json::object();
  document["format"] = 1;
  base::write_json(store / kStoreFile, document);
}

struct Words {  // of "pets:production"
  std::string name, which;
};

Words split_reference(std::string_view reference) {
  const size_t colon = reference.find(':');
  Words words{std::string(reference.substr(0, colon)), ""};
  if (colon != std::string_view::npos) words.which = reference.substr(colon + 1);
  return words;
}

void check_known(const Path& store, const std::string& name) {
  check_store(store);
  if (is_name(name) && has_entries(numbers_folder(store, name))) return;
  throw Error(Blame::user, text(store.string(), ": no version has the name '", name, "'"),
              base::did_you_mean(name, names(store)));
}

Version version_from(const Path& store, const std::string& name, const Entry& entry) {
  Version version;
  version.name = name;
  version.number = entry.number;
  version.id = entry.said.string_or("version", "");
  if (version.id.size() != kIdDigits || !is_id_start(version.id)) {  // it becomes part of a path
    throw Error(Blame::machine,
                text(store.string(), ": entry ", entry.number, " of '", name, "' names no version: ", version.id),
                "nothing of lockstep wrote this entry: ask who else writes to the store");
  }
  version.folder = versions_folder(store) / version.id;
  version.added = entry.said.double_or("time", 0);
  return version;
}

std::vector<std::string> tag_names(const Path& store, const std::string& name) {
  std::vector<std::string> tags;
  for (const Path& path : base::list_folder(tags_folder(store, name))) {
    if (has_entries(path)) tags.push_back(path.filename().string());
  }
  std::sort(tags.begin(), tags.end());
  return tags;
}

[[noreturn]] void throw_no_tag(const Path& store, const std::string& name, const std::string& tag) {
  const auto tags = tag_names(store, name);
  throw Error(Blame::user, text(store.string(), ": '", name, "' has no tag '", tag, "'"),
              tags.empty() ? text("it has none yet: lockstep store tag ", base::shell_word(name), " VERSION TAG")
                           : base::did_you_mean(tag, tags));
}

// The number that the tag points to now; 0: there is no such tag.
int64_t tagged(const Path& store, const std::string& name, const std::string& tag) {
  const auto last = read_last_entry(tags_folder(store, name) / tag);
  return last.empty() ? 0 : last.front().said.at("number").as_int();
}

Version with_number(const Path& store, const std::string& name, int64_t number, std::string_view which) {
  const auto entries = read_entries(numbers_folder(store, name));
  if (number >= 1 && number <= static_cast<int64_t>(entries.size())) {
    return version_from(store, name, entries[static_cast<size_t>(number - 1)]);
  }
  throw Error(Blame::user, text(store.string(), ": '", name, "' has no version '", which, "'"),
              text("it has ", entries.size(), ": lockstep store show ", base::shell_word(name), " --store ",
                   base::shell_path(store.string())));
}

Version with_id(const Path& store, const std::string& name, const std::string& digits) {
  for (const Entry& entry : read_entries(numbers_folder(store, name))) {
    Version version = version_from(store, name, entry);
    if (version.id.starts_with(digits)) return version;
  }
  throw Error(Blame::user, text(store.string(), ": no version of '", name, "' has an id that begins with ", digits),
              text("lockstep store show ", base::shell_word(name), " --store ", base::shell_path(store.string())));
}

// By entries alone.
Version look_up(const Path& store, std::string_view reference) {
  const Words words = split_reference(reference);
  check_known(store, words.name);
  if (words.which.empty() || words.which == kNewest) {
    return version_from(store, words.name, read_last_entry(numbers_folder(store, words.name)).at(0));
  }
  int64_t number = 0;
  if (is_number(words.which) && words.which.size() < kLeastDigits) {
    std::from_chars(words.which.data(), words.which.data() + words.which.size(), number);
    return with_number(store, words.name, number, words.which);
  }
  if (is_name(words.which)) number = tagged(store, words.name, words.which);
  if (number > 0) return with_number(store, words.name, number, words.which);
  if (is_id_start(words.which)) return with_id(store, words.name, words.which);
  throw_no_tag(store, words.name, words.which);
}

[[noreturn]] void throw_damaged(const Version& version, const std::string& why) {
  throw Error(Blame::machine, text(version.folder.string(), " (", version.title(), ") is damaged: ", why),
              text("bring this folder back from a copy of the store, or add the run again: rm -r ",
                   base::shell_path(version.folder.string()), ", then lockstep store add"));
}

Json entry_of(const std::string& why) {
  Json said = Json::object();
  said["why"] = why;
  said["time"] = base::unix_seconds();
  said["host"] = site::host_name();
  return said;
}

Json tag_entry(const std::string& why, const Version& version) {
  Json said = entry_of(why);
  said["number"] = version.number;
  said["version"] = version.id;
  return said;
}

}  // namespace

std::string Version::title() const {
  return text(name, " version ", number);
}

bool is_store(const Path& folder) {
  std::error_code none;
  return std::filesystem::is_regular_file(folder / kStoreFile, none);
}

Version resolve(const Path& store, std::string_view reference) {
  Version version = look_up(store, reference);
  if (const std::string why = manifest_damage(version.folder); !why.empty()) throw_damaged(version, why);
  for (const std::string& tag : tag_names(store, version.name)) {
    if (tagged(store, version.name, tag) == version.number) version.tags.push_back(tag);
  }
  return version;
}

std::string id_of(const Path& store, std::string_view reference) {
  return look_up(store, reference).id;
}

void check(const Version& version) {
  if (const std::string why = damage(version.folder); !why.empty()) throw_damaged(version, why);
}

std::optional<Reference> find_reference(const std::string& source) {
  std::error_code none;
  if (std::filesystem::exists(source, none)) return std::nullopt;
  const Path path = source;
  const std::string last = path.filename().string();
  if (!is_name(split_reference(last).name)) return std::nullopt;
  if (path.has_parent_path()) {
    if (!is_store(path.parent_path())) return std::nullopt;
    return Reference{path.parent_path(), last};
  }
  const char* variable = std::getenv("LOCKSTEP_STORE");
  if (variable == nullptr || *variable == 0) return std::nullopt;
  return Reference{variable, last};
}

std::vector<std::string> names(const Path& store) {
  check_store(store);
  std::vector<std::string> found;
  for (const Path& path : base::list_folder(names_folder(store))) {
    const std::string name = path.filename().string();  // one that nobody could have given is no reason to list none
    if (is_name(name) && has_entries(path / "versions")) found.push_back(name);  // else a first add was killed
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Version> versions(const Path& store, const std::string& name) {
  check_known(store, name);
  std::vector<Version> all;
  const auto entries = read_entries(numbers_folder(store, name));
  all.reserve(entries.size());
  for (const Entry& entry : entries) all.push_back(version_from(store, name, entry));
  for (const std::string& tag : tag_names(store, name)) {
    const int64_t number = tagged(store, name, tag);
    if (number >= 1 && number <= static_cast<int64_t>(all.size())) {
      all[static_cast<size_t>(number - 1)].tags.push_back(tag);
    }
  }
  return all;
}

Version add(const Path& store, const std::string& name, std::span<const run::CheckpointPart> parts) {
  check_name(name);
  make_store(store);
  const std::string id = write_version(versions_folder(store), parts);
  const Path numbers = numbers_folder(store, name);
  Json said = entry_of("add");
  said["version"] = id;
  for (;;) {  // another writer may take the number: then there is one more to look at
    const auto entries = read_entries(numbers);
    for (const Entry& entry : entries) {
      if (entry.said.at("version").as_string() == id) return version_from(store, name, entry);
    }
    const int64_t number = static_cast<int64_t>(entries.size()) + 1;
    if (add_entry(numbers, number, said)) return version_from(store, name, {number, said});
  }
}

Version set_tag(const Path& store, const std::string& name, const std::string& version, const std::string& tag) {
  check_tag(tag);
  Version found = resolve(store, text(name, ":", version));
  check(found);
  const Path folder = tags_folder(store, name) / tag;
  for (;;) {
    const auto last = read_last_entry(folder);
    if (!last.empty() && last.front().said.at("number").as_int() == found.number) break;
    if (add_entry(folder, last.empty() ? 1 : last.front().number + 1, tag_entry("tag", found))) break;
  }
  return resolve(store, text(name, ":", found.number));
}

Version rollback(const Path& store, const std::string& name, const std::string& tag) {
  check_known(store, name);
  const Path folder = tags_folder(store, name) / tag;
  if (!is_name(tag) || tagged(store, name, tag) == 0) {
    throw_no_tag(store, name, tag);
  }
  const auto entries = read_entries(folder);
  std::vector<int64_t> history;  // versions that a rollback can lead to, the present one last
  for (const Entry& entry : entries) {
    if (entry.said.string_or("why", "") == "rollback") {
      if (!history.empty()) history.pop_back();
    } else {
      history.push_back(entry.said.at("number").as_int());
    }
  }
  if (history.size() < 2) {
    throw Error(Blame::user,
                text(name, ":", tag, " points to version ", tagged(store, name, tag),
                     ", and there is none before it to go back to"),
                text("lockstep store tag ", base::shell_word(name), " VERSION ", base::shell_word(tag)));
  }
  const int64_t before = history[history.size() - 2];
  Version version = resolve(store, text(name, ":", before));
  check(version);
  if (!add_entry(folder, static_cast<int64_t>(entries.size()) + 1, tag_entry("rollback", version))) {
    throw Error(Blame::user, text(name, ":", tag, " was moved by another process meanwhile"),
                text("look where it points now, then decide: lockstep store show ", base::shell_word(name)));
  }
  return resolve(store, text(name, ":", before));
}

}  // namespace lockstep::store
