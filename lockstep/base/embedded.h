// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace lockstep::base {

struct Embedded {
  std::string_view name;  // path in the source tree: "catalogue/gpus.json"
  std::string_view content;
};

// The files built into the program (cmake/embed.py writes the definition).
std::vector<Embedded> embedded_files();

// The commit this program was built from; "-dirty" behind it when files differed (cmake/commit.cmake).
std::string_view build_commit();

}  // namespace lockstep::base
