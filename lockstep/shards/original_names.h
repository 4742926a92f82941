// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/base/file.h"

namespace lockstep::shards {

// Beside the shards of a folder: {"key": "00000012-tom", "name": "cat/tom.jpg"}, a line for each sample that was to be
// in it. Sets of earlier versions have none.
constexpr const char* kNames = "names.jsonl";

std::string name_line(std::string_view key, std::string_view name);

// What the source called the samples with these keys, as far as the folder's list tells; a damaged line tells nothing.
std::map<std::string, std::string> read_names(const base::Path& folder, const std::set<std::string>& keys);

}  // namespace lockstep::shards
