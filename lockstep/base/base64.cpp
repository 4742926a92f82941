// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/base64.h"

#include <array>
#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63];
  }
  return out;
}

std::string from_base64(std::string_view words, const std::string& source) {
  const auto fail = [&]() -> Error { return {Blame::user, text(source, ": no base64 text")}; };
  if (words.size() % 4 != 0) throw fail();
  std::string out;
  out.reserve(words.size() / 4 * 3);
  for (size_t i = 0; i < words.size(); i += 4) {
    uint32_t group = 0;
    size_t padding = 0;
    for (size_t k = 0; k < 4; ++k) {
      const char c = words[i + k];
      const size_t digit = kDigits.find(c);
      const bool is_padding = c == '=' && i + 4 == words.size() && k >= 2;
      if (digit == std::string_view::npos && !is_padding) throw fail();
      if (padding > 0 && !is_padding) throw fail();
      padding += is_padding ? 1 : 0;
      group = group << 6 | (is_padding ? 0U : static_cast<uint32_t>(digit));
    }
    for (size_t k = 0; k + padding < 3; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return out;
}

}  // namespace lockstep::base
