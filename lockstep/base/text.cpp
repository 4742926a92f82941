// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>

namespace lockstep::base {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Levenshtein distance, letter case ignored, with one row of memory.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string whole;
  for (const auto& part : parts) {
    if (!whole.empty()) whole += separator;
    whole += part;
  }
  return whole;
}

std::vector<std::string> split(std::string_view whole, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t cut = whole.find(separator);
    parts.emplace_back(whole.substr(0, cut));
    if (cut == std::string_view::npos) return parts;
    whole.remove_prefix(cut + 1);
  }
}

std::string_view trim(std::string_view whole) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!whole.empty() && blank(whole.front())) whole.remove_prefix(1);
  while (!whole.empty() && blank(whole.back())) whole.remove_suffix(1);
  return whole;
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t most) {
  struct Scored {
    size_t distance;
    const std::string* name;
  };
  std::vector<Scored> scored;
  for (const auto& candidate : candidates) {
    const bool contains = name.size() >= 3 && candidate.find(name) != std::string::npos;
    const size_t distance = contains ? 1 : edit_distance(name, candidate);
    if (distance <= std::max<size_t>(2, name.size() / 3)) scored.push_back({distance, &candidate});
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const Scored& a, const Scored& b) { return a.distance < b.distance; });
  std::vector<std::string> names;
  for (size_t i = 0; i < scored.size() && i < most; ++i) {
    if (scored[i].distance <= 2 * scored[0].distance) names.push_back(*scored[i].name);  // beside a slip of one letter
  }
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto near = nearest(name, candidates);
  if (near.empty()) return text("known: ", join(candidates, ", "));
  std::string quoted;
  for (size_t i = 0; i < near.size(); ++i) {
    if (i > 0) quoted += i + 1 == near.size() ? " or " : ", ";
    quoted += "'" + near[i] + "'";
  }
  return text("did you mean ", quoted, "?");
}

size_t utf8_length(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > bytes.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte(at + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool too_large = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

bool is_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = static_cast<uint8_t>(bytes[at]) < 0x80 ? 1 : utf8_length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace lockstep::base
