// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::sources {

constexpr const char* kDatasetComplete = "dataset.json";
constexpr const char* kDatasetBegun = "dataset.begun.json";  // stands there until dataset.json does

// Members that a description has only where the option is given: one that stands in the file alone makes another
// dataset.
constexpr std::array<std::string_view, 3> kOptionalMembers = {"order", "masks", "source_lists_crc32c"};

// What the folder already holds: true for the complete dataset that `description` tells, false for nothing or a begun
// part of it. Both files hold every member of the description, and what is found out later besides.
// User error: a file in its place, another dataset, or something that is no dataset of ours.
bool is_complete(const base::Path& folder, const base::Json& description);

// The first thing that is written to a folder, after its lock: whatever a kill leaves there from then on is known as
// ours.
void mark_begun(const base::Path& folder, const base::Json& description);

// What mark_begun() wrote, once dataset.json is there. A kill may fall between the two: then the next command does it.
void unmark_begun(const base::Path& folder);

// Away with what a killed process left half-written in this folder.
void remove_litter(const base::Path& folder);

// Whole under its name or absent; no sync of its own.
void place_file(const base::Path& path, const std::string& content);

// All that was placed below it is on the disk when this returns.
void sync_file_system(const base::Path& folder);

}  // namespace lockstep::sources
