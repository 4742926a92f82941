// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::site {

// A file under /proc or /sys, whole; empty when it is not there or may not be read: not every kernel has every file.
std::string kernel_text(const std::string& file);

// The names in a folder that begin with `prefix` and go on with digits only ("node0", "node1"), sorted by name.
std::vector<std::string> numbered_names(const std::string& folder, const std::string& prefix);

}  // namespace lockstep::site
