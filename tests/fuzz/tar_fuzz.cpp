// sources: lockstep/base/*.cpp lockstep/shards/tar.cpp
// SPDX-License-Identifier: Apache-2.0
// Any bytes give members that lie within them, with names that lead nowhere else, or a user error.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/shards/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  try {
    shards::TarReader reader(std::as_bytes(std::span(bytes, size)), "fuzz.tar");
    int64_t end = 0;
    while (const auto member = reader.next()) {
      if (member->header < end || member->offset < member->header + shards::kTarBlock || member->size < 0) std::abort();
      if (member->offset + member->size > static_cast<int64_t>(size)) std::abort();
      if (member->name.empty() || member->name.front() == '/' || !base::is_utf8(member->name)) std::abort();
      for (const auto& part : base::split(member->name, '/')) {
        if (part == "..") std::abort();
      }
      end = member->offset + member->size;
    }
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
