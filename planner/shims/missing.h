// SPDX-License-Identifier: Apache-2.0
// What the rooms use of C++20's library and Debian's Emscripten 3.1 has not: read before every source of the page's
// build (planner/CMakeLists.txt), so that the rooms know nothing of it. Numbers are printed as libstdc++ prints them:
// the page's digits are the program's.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "planner/shims/stop_token"

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

// The fewest digits from which the number is read back; of these the shorter of 1234 and 1.234e+03. Whole numbers
// beyond 2^53 have all their digits where they are not written with an exponent.
inline to_chars_result to_chars(char* first, char* last, double value, chars_format format = chars_format::general) {
  string text;
  if (!isfinite(value)) {
    text = isnan(value) ? (signbit(value) ? "-nan" : "nan") : (value < 0 ? "-inf" : "inf");
  } else {
    char buffer[400];
    int digits = 1;
    do {
      snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
    } while (strtod(buffer, nullptr) != value && ++digits <= 17);
    const char* exponent_at = strchr(buffer, 'e');
    const int exponent = atoi(exponent_at + 1);
    const string scientific(buffer);  // C prints two digits of the exponent at least, and so does libstdc++
    const int decimals = digits - 1 - exponent;
    snprintf(buffer, sizeof buffer, "%.*f", decimals > 0 ? decimals : 0, value);
    const string fixed(buffer);
    text = format == chars_format::fixed || fixed.size() <= scientific.size() ? fixed : scientific;
  }
  if (static_cast<size_t>(last - first) < text.size()) return {last, errc::value_too_large};
  memcpy(first, text.data(), text.size());
  return {first + text.size(), errc()};
}

inline from_chars_result from_chars(const char* first, const char* last, double& value,
                                    chars_format format = chars_format::general) {
  const auto is_digit = [&](const char* at) { return at != last && *at >= '0' && *at <= '9'; };
  const char* at = first;
  if (at != last && *at == '-') ++at;
  const char* const digits = at;
  while (is_digit(at)) ++at;
  size_t count = static_cast<size_t>(at - digits);
  if (at != last && *at == '.') {
    const char* const fraction = ++at;
    while (is_digit(at)) ++at;
    count += static_cast<size_t>(at - fraction);
  }
  if (count == 0) return {first, errc::invalid_argument};
  if (format != chars_format::fixed && at != last && (*at == 'e' || *at == 'E')) {
    const char* exponent = at + 1;
    if (exponent != last && (*exponent == '-' || *exponent == '+')) ++exponent;
    if (is_digit(exponent)) {
      while (is_digit(exponent)) ++exponent;
      at = exponent;
    }
  }
  const double read = strtod(string(first, at).c_str(), nullptr);
  if (!isfinite(read)) return {at, errc::result_out_of_range};
  value = read;
  return {at, errc()};
}

}  // namespace std
