// sources: lockstep/base/*.cpp
// SPDX-License-Identifier: Apache-2.0
// Any bytes give a value or a user error; what was read prints and reads back equal, in both layouts.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::base;
  try {
    const Json value = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    for (const int indent : {-1, 2}) {
      // Printing unescapes nothing and adds blanks only, so a document near the limit may grow past it.
      if (!(parse_json(value.dump(indent), "again.json", {.max_bytes = size_t{64} << 20}) == value)) std::abort();
    }
  } catch (const Error& error) {
    if (error.blame() != Blame::user) std::abort();
  }
  return 0;
}
