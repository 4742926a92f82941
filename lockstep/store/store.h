// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/run/part_file.h"

namespace lockstep::store {

// A store of trained networks: a folder (docs/formats/store.md). Names have numbered versions, and tags that point to
// one of them; everything is only ever added, so that any number of processes on any number of hosts may read and write
// at once, and be killed at any moment. None of these calls waits for another process.

struct Version {
  std::string name;                    // "pets"
  int64_t number = 0;                  // 1 = the first of this name
  std::string id;                      // SHA-256 of its content, as hexadecimal digits
  base::Path folder;                   // of its files: opens like a run for prediction
  double added = 0;                    // Unix time in seconds
  std::vector<std::string> tags = {};  // those that point to it now, sorted

  base::Path weights() const { return folder / "weights.safetensors"; }
  base::Path job() const { return folder / "job.json"; }
  base::Path about() const { return folder / "about.json"; }  // metrics, data, licence
  base::Path card() const { return folder / "README.md"; }    // the model card
  std::string title() const;                                  // "pets version 3"
};

bool is_store(const base::Path& folder);

// "pets" or "pets:latest" (the newest version), "pets:3" (a number), "pets:production" (a tag), "pets:9f86d081" (the
// first 8 or more digits of an id). Looks at nothing of the version but its list of files: check() looks at all of it.
// User error when there is no such store, name, version or tag; machine error when what it reads is damaged.
Version resolve(const base::Path& store, std::string_view reference);
// What it points to now, without a look into the version: for those who ask again and again.
std::string id_of(const base::Path& store, std::string_view reference);
// Machine error naming the damaged file unless every checksum of the version holds.
void check(const Version& version);

// A version where a run folder may be given too: "STORE/pets:production", or "pets:production" with the store that the
// environment variable LOCKSTEP_STORE names. Nothing when `source` is no such thing: a path that exists never is.
struct Reference {
  base::Path store;
  std::string name;  // with its tag or version
};
std::optional<Reference> find_reference(const std::string& source);

std::vector<std::string> names(const base::Path& store);
std::vector<Version> versions(const base::Path& store, const std::string& name);  // in order; user error: no such name

// A version with these files under that name, as a new number unless one of it has the same content already. Makes the
// store where there is none. Errors as write_version; user error when the name cannot be one.
Version add(const base::Path& store, const std::string& name, std::span<const run::CheckpointPart> parts);

// The tag points to that version from now on; the version it pointed to is kept in its history.
Version set_tag(const base::Path& store, const std::string& name, const std::string& version, const std::string& tag);
// Back to the version before; once more, to the one before that. User error when there is none, or another process
// moved the tag meanwhile.
Version rollback(const base::Path& store, const std::string& name, const std::string& tag);

struct Verified {
  int64_t versions = 0, names = 0, tags = 0;
  int64_t bytes = 0;
  std::vector<std::string> damage;  // one line for each thing, with its file
  std::vector<std::string> notes;   // what nobody points to, and what killed writers left behind
};
// Reads everything.
Verified verify(const base::Path& store);

}  // namespace lockstep::store
