// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep::weights {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> bytes;  // points into the archive
};

bool looks_like_zip(std::span<const std::byte> content);

// The entries of an archive whose members are all stored, not compressed (so does PyTorch). `source` names it in
// errors. User error for compression, encryption, duplicate names, ranges outside the file or inside each other.
std::vector<ZipEntry> read_stored_zip(std::span<const std::byte> content, const std::string& source);

}  // namespace lockstep::weights
