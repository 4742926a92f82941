// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/kernel_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace lockstep::site {

std::string kernel_text(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::vector<std::string> numbered_names(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename();
    const bool numbered = name.size() > prefix.size() && name.compare(0, prefix.size(), prefix) == 0 &&
                          name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (numbered) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep::site
