// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::base {

// RFC 4648, with padding, in one line.
std::string to_base64(std::string_view bytes);
// User error for anything else; `source` names it.
std::string from_base64(std::string_view words, const std::string& source);

}  // namespace lockstep::base
