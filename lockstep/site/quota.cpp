// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/quota.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"

namespace lockstep::site {
namespace {

// "1234" or "1234*" (over the limit); nothing for other words.
std::optional<int64_t> figure_in(std::string_view word) {
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
  const auto used = figure_in(words[at]), soft = figure_in(words[at + 1]), hard = figure_in(words[at + 2]);
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
    if (!words.empty() && figure_in(words[0])) words.insert(words.begin(), "");
    if (words.size() >= 8 && figure_in(words[1])) row = words;
  }
  Quota quota;
  if (row.size() < 8) return quota;
  if (const auto kib = left(row, 1)) quota.free_bytes = *kib * 1024;
  const size_t files = figure_in(row[4]) && row.size() == 8 ? 4 : 5;  // without a grace time the column may be missing
  if (files + 2 < row.size()) quota.free_files = left(row, files);
  return quota;
}

namespace {

// New files take the folder's group where its set-group bit is set.
gid_t group_of_new_files(const std::string& folder) {
  struct stat status {};
  const bool inherits = ::stat(folder.c_str(), &status) == 0 && (status.st_mode & S_ISGID) != 0;
  return inherits ? status.st_gid : ::getegid();
}

std::optional<int64_t> least(const std::optional<int64_t>& one, const std::optional<int64_t>& other) {
  return one && other ? std::min(*one, *other) : one ? one : other;
}

// Whatever the exit code: quota's is not 0 just when a limit is exceeded.
void ask_quota(const std::vector<std::string>& words, std::chrono::milliseconds patience, Quota& all) {
  const Answer answer = ask(words, patience);
  if (answer.code < 0 && find_on_path(words[0])) all.unanswered = words[0];
  const Quota one = parse_quota(answer.code < 0 ? "" : answer.out);
  all.free_bytes = least(all.free_bytes, one.free_bytes);
  all.free_files = least(all.free_files, one.free_files);
}

}  // namespace

Quota read_quota(const std::string& folder, const std::string& type, std::chrono::milliseconds patience) {
  const std::string user = std::to_string(::getuid()), group = std::to_string(group_of_new_files(folder));
  Quota all;
  for (const auto& [option, id] : {std::pair("-u", user), std::pair("-g", group)}) {
    const auto words = type == "lustre" ? std::vector<std::string>{"lfs", "quota", "-q", option, id, folder}
                                        : std::vector<std::string>{"quota", option, "-w", "-p", "-f", folder, id};
    ask_quota(words, patience, all);
    if (!all.unanswered.empty()) break;  // once is enough to wait
  }
  return all;
}

}  // namespace lockstep::site
