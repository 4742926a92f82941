// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::verbs {

constexpr const char* kDatasetComplete = "dataset.json";
constexpr const char* kDatasetBegun = "dataset.begun.json";  // stands there until dataset.json does

// What the folder already holds: true for the complete dataset that `description` tells, false for nothing or a begun
// part of it. Both files hold every member of the description, and what is found out later besides.
// User error: a file in its place, another dataset, or something that is no dataset of ours.
bool is_complete(const base::Path& folder, const base::Json& description);

// Whole under its name or absent; no sync of its own.
void place_file(const base::Path& path, const std::string& content);

// All that was placed below it is on the disk when this returns.
void sync_file_system(const base::Path& folder);

}  // namespace lockstep::verbs
