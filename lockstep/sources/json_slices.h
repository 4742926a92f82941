// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace lockstep::sources {

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

// The value of a slice. Errors name the place in the whole text; the places that the value itself remembers are those
// in the slice, without a source: to find them for each of a million slices would take longer than to parse it.
base::Json parse_slice(std::string_view text, const std::string& source, JsonSlice slice);
// The same, where also the value remembers its source and its place in the whole text.
base::Json parse_placed_slice(std::string_view text, const std::string& source, JsonSlice slice);

// What `read` makes of the value of a slice. When it complains it is asked again, with a value that knows its place.
template <class Read>
auto read_slice(std::string_view text, const std::string& source, JsonSlice slice, const Read& read) {
  try {
    return read(parse_slice(text, source, slice));
  } catch (const base::Error&) {
    return read(parse_placed_slice(text, source, slice));
  }
}

}  // namespace lockstep::sources
