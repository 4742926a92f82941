// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::base {

// The text as a terminal may have it: file names and documents are anybody's, and an escape sequence in one of them can
// fill the clipboard or rewrite what stands above. Control characters other than line feed and tab become "\u001b" (as
// in JSON, which stays JSON by that), what is no UTF-8 becomes U+FFFD.
std::string harmless(std::string_view text);

// The first thing that main() does. Standard streams that the caller closed are opened on /dev/null, else the next file
// would get their number and with it what is printed. From here on `stdout` and `stderr` are the one way to the
// outside: all that is printed through them is made harmless().
void open_console();

// Writes what `stdout` still holds. Machine error when anything printed there was lost, now or before. Not when the
// reader is gone (`| head -1`): it has what it wanted.
void check_output();

}  // namespace lockstep::base
