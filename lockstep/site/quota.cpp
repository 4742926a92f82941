// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/quota.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"

namespace lockstep::site {
namespace {

constexpr std::chrono::milliseconds kQuotaPatience{1000};

// "1234" or "1234*" (over the limit); nothing for other words.
std::optional<int64_t> number_in(std::string_view word) {
  if (word.ends_with('*')) word.remove_suffix(1);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!(line = base::trim(line)).empty()) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// What is left of `used`, soft and hard limit at `at`; nothing without a limit.
std::optional<int64_t> left(const std::vector<std::string>& words, size_t at) {
  const auto used = number_in(words[at]), soft = number_in(words[at + 1]), hard = number_in(words[at + 2]);
  if (!used || !soft || !hard) return std::nullopt;
  const int64_t limit = *hard > 0 ? *hard : *soft;
  if (limit == 0) return std::nullopt;
  return std::max<int64_t>(limit - *used, 0);
}

}  // namespace

Quota parse_quota(std::string_view output) {
  std::vector<std::string> row;  // a long name of a file system stands on a line of its own
  for (const auto& line : base::split(output, '\n')) {
    auto words = words_of(line);
    if (!words.empty() && number_in(words[0])) words.insert(words.begin(), "");
    if (words.size() >= 8 && number_in(words[1])) row = words;
  }
  Quota quota;
  if (row.size() < 8) return quota;
  if (const auto kib = left(row, 1)) quota.free_bytes = *kib * 1024;
  const size_t files = number_in(row[4]) && row.size() == 8 ? 4 : 5;  // without a grace time the column may be missing
  if (files + 2 < row.size()) quota.free_files = left(row, files);
  return quota;
}

Quota read_quota(const std::string& folder, const std::string& type) {
  const std::string user = std::to_string(::getuid());
  const auto output = type == "lustre" ? output_of({"lfs", "quota", "-q", "-u", user, folder}, kQuotaPatience)
                                       : output_of({"quota", "-u", "-w", "-p", "-f", folder}, kQuotaPatience);
  return output ? parse_quota(*output) : Quota{};
}

}  // namespace lockstep::site
