// SPDX-License-Identifier: Apache-2.0
// Built in place of zlib_door.cpp where zlib.h is missing.
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/zlib_door.h"

namespace lockstep::sources {

std::string gunzip(std::span<const std::byte>, size_t, const std::string& source) {
  throw base::Error(base::Blame::machine, base::text(source, ": this lockstep was built without zlib"),
                    "unpack it (gunzip), or install the package zlib1g-dev and build again");
}

std::string gunzip_start(std::span<const std::byte> file, size_t bytes, const std::string& source) {
  return gunzip(file, bytes, source);
}

}  // namespace lockstep::sources
