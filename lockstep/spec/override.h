// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"

namespace lockstep::spec {

// Applies the words behind each --set, "a.b[0].c=value", to a document before it is checked. The value is JSON, or
// else a string; where the field is text, always a string. User error when the key does not exist.
void apply_sets(const Section& root, base::Json& document, const std::vector<std::string>& sets);

// A key of a document, taken apart: "training.phases[0].epochs".
struct KeyPart {
  std::string key;
  int64_t index = -1;  // of a list's element; -1: none
};
std::vector<KeyPart> split_key(const std::string& key);  // user error when a bracket is malformed

}  // namespace lockstep::spec
