// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/run/part_file.h"

namespace lockstep::store {

// A version is a folder named after its content: version.json lists every other file with size and SHA-256, and the
// SHA-256 of version.json is the version's id. It is never changed.

inline constexpr const char* kManifestName = "version.json";

// Writes the files and gives the id. The folder appears under its final name when all of it is on the disk; where one
// of the same content is there already, that one stays. Machine error when the disk is full or fails (nothing is left
// behind), and when the folder that is there is damaged.
std::string write_version(const base::Path& versions, std::span<const run::CheckpointPart> parts);

// Why the version in `folder` cannot be trusted, with the name of the file; empty when every checksum holds.
std::string damage(const base::Path& folder);
// The same for version.json alone, which costs no look at the weights.
std::string manifest_damage(const base::Path& folder);

int64_t bytes_of(const base::Path& folder);  // of all its files. REQUIRES: manifest_damage is empty

}  // namespace lockstep::store
