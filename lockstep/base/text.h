// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

// Streams its arguments into one string; stands in for std::format, which g++ 12 lacks.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view whole, char separator);
std::string_view trim(std::string_view whole);

// The candidates nearest to `name` by edit distance, best first, at most `most`; none when nothing is near enough
// to be a plausible slip of the finger.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t most = 3);

// "did you mean 'a' or 'b'?", or "known: a, b, c" when nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// Bytes of the UTF-8 sequence at `at`; 0 when it is malformed.
size_t utf8_length(std::string_view bytes, size_t at);
// True when `bytes` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view bytes);

}  // namespace lockstep::base
