// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace lockstep::base {

// What an earlier version called otherwise, so that an error about the old name can say the new one.

// What `option` of `verb` ("prep", "--mend") is called now. Nothing: it was never an option.
std::optional<std::string_view> new_option_name(std::string_view verb, std::string_view option);

// What the key `key` of a document is called now. Nothing: it was never one, or still is.
std::optional<std::string_view> new_key_name(std::string_view key);
// What the key `key` of a document was called before. Nothing: the same.
std::optional<std::string_view> old_key_name(std::string_view key);

}  // namespace lockstep::base
