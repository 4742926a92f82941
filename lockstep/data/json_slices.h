// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/json.h"

namespace lockstep::data {

// One element of an array, as it stands in its file.
struct JsonSlice {
  uint64_t offset = 0;
  uint64_t size = 0;

  bool operator==(const JsonSlice&) const = default;
};

// Walks a large JSON text without building it in memory (COCO's training list would take gigabytes): calls
// element(key, slice) for each element of each array that is a member of the top object; with the key "" for those of
// a top array. Everything else is passed over. User error with the line for what is no JSON, or nests beyond 64.
void for_each_element(std::string_view text, const std::string& source,
                      const std::function<void(std::string_view key, JsonSlice slice)>& element);

// The value of a slice; places in errors are those of the whole text.
base::Json parse_slice(std::string_view text, const std::string& source, JsonSlice slice);

}  // namespace lockstep::data
