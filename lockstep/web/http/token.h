// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/file.h"

namespace lockstep::web {

std::string random_token();  // 256 bits, 64 hexadecimal digits

// The token that lies in the file; where there is none, a new one, in a file that its owner alone may read. User error
// for a link, a file of another user, one that others may read, or one that holds no token.
std::string token_in(const base::Path& file);

}  // namespace lockstep::web
