// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/base/json.h"

namespace lockstep::task {

// The "json" member of a sample.
base::Json read_json_member(std::span<const std::byte> bytes);

// Its number `key`, which the job's key `setting` names. User error that tells which keys there are.
double number_in(const base::Json& document, const std::string& key, const char* setting);

}  // namespace lockstep::task
