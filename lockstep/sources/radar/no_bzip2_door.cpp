// SPDX-License-Identifier: Apache-2.0
// Built in place of bzip2_door.cpp where bzlib.h is missing.
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/radar/bzip2_door.h"

namespace lockstep::sources {
namespace {

constexpr const char* kInstallBzip2 = "install the package libbz2-dev and build again";

}  // namespace

std::string bunzip2(std::span<const std::byte>, size_t, const std::string& source) {
  throw base::Error(base::Blame::machine, base::text(source, ": this lockstep was built without bzip2"), kInstallBzip2);
}

std::string bzip2(std::string_view) {
  throw base::Error(base::Blame::machine, "this lockstep was built without bzip2", kInstallBzip2);
}

}  // namespace lockstep::sources
