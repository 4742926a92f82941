// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::store {

// A folder that is only ever added to: numbered files, 1, 2, 3, ..., each with its own checksum. An entry appears at
// once with all of its content (a hard link), and only one of several writers gets a number: no lock, nothing to
// repair after a kill, on any number of hosts that share the file system.
struct Entry {
  int64_t number = 0;
  base::Json said;  // an object
};

// In order; none where there is no such folder. Machine error that names an entry which is damaged or missing.
std::vector<Entry> read_entries(const base::Path& folder);
bool has_entries(const base::Path& folder);  // whatever they say
// The last one alone. Errors as above.
std::vector<Entry> read_last_entry(const base::Path& folder);

// False when another writer has that number already: look again. `said` is an object.
bool add_entry(const base::Path& folder, int64_t number, const base::Json& said);

// What writers that were killed left behind in it: files that nothing reads.
std::vector<base::Path> leftovers(const base::Path& folder);

}  // namespace lockstep::store
